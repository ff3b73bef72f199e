"""Which tools may be called again unasked: only those that are declared read-only, and not destructive.

What counts is what the live server says of its tools now; a capture is a file that anybody may have made. Only where
the live server does not list its tools, the recorded list counts (tool annotations, 2025-03-26 and later).
"""

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any, Final

from mcpsniff.protocol.message import ERROR, RESPONSE, Message
from mcpsniff.protocol.param_headers import ParamHeader, learn
from mcpsniff.replay.script import Talk
from mcpsniff.replay.send.clean import CALL, calls_in

MOST_PAGES: Final = 100
"""Pages of a list of tools that are asked for."""
TOOLS: Final = "tools/list"


class Tools:
    """What is known of the tools of one live server, by what it and the capture say of them."""

    def __init__(self, talks: list[Talk], *, allow_writes: bool) -> None:
        self.allow_writes = allow_writes
        self.headers: OrderedDict[str, tuple[ParamHeader, ...]] = OrderedDict()
        """In 2026-07-28: the headers that tools ask for, by tool."""
        self._live: dict[str, Any] = {}
        self._is_listed = False
        self._was_asked = False
        self._recorded: dict[str, Any] = {}
        for talk in talks:
            for scene in talk.requests():
                if scene.method == TOOLS and (answer := scene.answer) is not None:
                    _note(self._recorded, answer)

    def learn(self, answer: Message) -> None:
        """The live server has answered ``tools/list``."""
        if answer.kind == RESPONSE:
            _note(self._live, answer)
            learn(self.headers, answer.result.get("tools"))
            self._is_listed = self._is_listed or answer.result.get("nextCursor") is None

    def must_ask(self, call: Message) -> bool:
        """True if the live server has not said yet what it declares of the tool that is called."""
        is_known = self._is_listed or self._was_asked or _name_of(call) in self._live
        return not self.allow_writes and not is_known

    def asked(self, answer: Message | None) -> str | None:
        """It was asked, and has answered or not; returns the cursor of the next page if there is one."""
        self._was_asked = True
        if answer is None or answer.kind == ERROR:
            return None
        self.learn(answer)
        cursor = answer.result.get("nextCursor")
        return cursor if isinstance(cursor, str) else None

    def why_not(self, call: Message) -> str | None:
        """Why a ``tools/call`` is not to be made, in words; None if it may be."""
        if self.allow_writes:
            return None
        name = _name_of(call)
        return _why_not(name, self._live if self._is_listed or name in self._live else self._recorded)

    def why_not_text(self, data: bytes, messages: Iterable[Message]) -> str | None:
        """Why a text is not to be sent, for what it may make a reader do; None if it may be.

        ``messages`` are what we read in it. To be asked of the very bytes, once more and last.
        """
        if self.allow_writes:
            return None
        calls = [message for message in messages if message.method == CALL]
        found = calls_in(data)
        if found is None or len(found) != len(calls):
            return "it is not one clean message, and a server may take it for the call of a tool"
        return next((why for call in calls if (why := self.why_not(call)) is not None), None)

    def why_recorded(self, call: Message) -> str | None:
        """Why it would not be made if the live server said what the capture says; None if it is not in there."""
        name = _name_of(call)
        return None if self.allow_writes or name not in self._recorded else _why_not(name, self._recorded)


def _why_not(name: str | None, known: Mapping[str, Any]) -> str | None:
    if name is None or name not in known:
        return "its tool is in no list of tools, and may change something"
    annotations = known[name]
    if annotations.get("destructiveHint") is True:
        return "its tool is declared destructive"
    return None if annotations.get("readOnlyHint") is True else "its tool is not declared read-only"


def _name_of(call: Message) -> str | None:
    name = call.params.get("name")
    return name if isinstance(name, str) else None


def _note(known: dict[str, Any], answer: Message) -> None:
    tools = answer.result.get("tools")
    for tool in tools if isinstance(tools, list) else ():
        if isinstance(tool, Mapping) and isinstance(name := tool.get("name"), str):
            annotations = tool.get("annotations")
            known[name] = annotations if isinstance(annotations, Mapping) else {}
