"""The rule that shows tools to the client under other names."""

from collections.abc import Mapping
from typing import Final

from mcpsniff.hooks.actions import Returned, Told, refuse
from mcpsniff.hooks.editor import Lane
from mcpsniff.protocol.message import REQUEST, Message
from mcpsniff.proxy.rules.blocking import UNKNOWN
from mcpsniff.proxy.rules.listings import list_in, name_in
from mcpsniff.proxy.rules.rule import Count, Rule, listed
from mcpsniff.transcript.safe import visible

CALL: Final = "tools/call"
TOOLS: Final = "tools/list"


class Renaming(Rule):
    """Tools have other names for the client: in lists, and in calls, where the server gets its own again.

    All names change at once, so two tools may take each other's. A tool of the server's own that has a name which
    another one takes is hidden: nobody could call it. The server's name of a tool is unknown to the client.
    """

    def __init__(self, names: Mapping[str, str], said: Mapping[str, str]) -> None:
        """``names``: the client's by the server's; ``said``: what each of them is called in records and at the end."""
        super().__init__("map-tool", lambda _: False)
        self._names = dict(names)
        self._back = {other: name for name, other in names.items()}
        self._said = said
        self._listed = dict.fromkeys(names, 0)
        self._called = dict.fromkeys(names, 0)
        self._covered: set[str] = set()

    def edit(self, message: Message, lane: Lane) -> Returned:  # noqa: ARG002
        """Change names."""
        if message.kind == REQUEST:
            return self._call(message) if message.method == CALL else message
        found = list_in(message)
        if found is None or message.link is None or message.link.method != TOOLS:
            return message
        return self._list(message)

    def act(self, message: Message, lane: Lane) -> Returned:  # noqa: ARG002
        """See `edit`."""
        return message

    def counts(self) -> list[Count]:
        """What came of each name."""
        return [self._count(name) for name in self._names]

    def _call(self, message: Message) -> Returned:
        called = message.params.get("name")
        name = self._back.get(called) if isinstance(called, str) else None
        if name is None:
            if not isinstance(called, str) or called not in self._names:
                return message
            self._note(self._called, [called])
            why = self.reason(f"tool {listed([called])} is {self._names[called]} for the client")
            return refuse(message, f"Unknown tool: {called}", code=UNKNOWN, why=why)
        self._note(self._called, [name])
        message.body["params"]["name"] = name
        return Told(message, self.reason(f"tool {called} is {name} for the server"))

    def _list(self, message: Message) -> Returned:
        found = list_in(message)
        assert found is not None
        listing, items = found
        names = [name_in(item, listing) for item in items]
        renamed = [name for name in names if name in self._names]
        covered = [name for name in names if name not in self._names and name in self._back]
        if not renamed and not covered:
            return message
        self._note(self._listed, [name for name in renamed if name is not None])
        self._covered |= {name for name in covered if name is not None}
        for item, name in zip(items, names, strict=True):
            if name in self._names:
                item[listing.name] = self._names[name]
        items[:] = [item for item, name in zip(items, names, strict=True) if name not in covered]
        words = [f"tool {listed([f'{name} is {self._names[name]}' for name in renamed if name])} for the client"]
        words = words if renamed else []
        if covered:
            words.append(f"hidden: tool {listed([name for name in covered if name])}, whose name another one has")
        return Told(message, self.reason("; ".join(words)))

    def _note(self, counts: dict[str, int], names: list[str]) -> None:
        with self._lock:
            for name in names:
                counts[name] += 1

    def _count(self, name: str) -> Count:
        acted = self._listed[name] + self._called[name]
        other = self._names[name]
        remark = f"the server's own tool {other} was hidden" if other in self._covered else ""
        return Count(self._said[name], acted, remark=visible(remark))
