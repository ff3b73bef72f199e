"""The edit hooks of one addon, in line: whatever they do or fail to do, a message passes as it came or as they say."""

import copy
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import orjson

from mcpsniff.hooks.actions import Action, Headed, HttpHead, Returned, Told
from mcpsniff.hooks.addon import Addon, Call
from mcpsniff.hooks.context import ctx
from mcpsniff.hooks.editor import Lane
from mcpsniff.hooks.faults import described
from mcpsniff.hooks.misfit import misfit, wrong_headers
from mcpsniff.hooks.passing import several
from mcpsniff.hooks.waiting import GoneError, settled
from mcpsniff.protocol.message import Message
from mcpsniff.protocol.patch import patched, text_of

EDIT = "mcp_edit"
HEAD = "mcp_edit_head"
PASSES = "; messages pass as they are where it fails"


class AddonInterceptor:
    """An `mcpsniff.hooks.editor.Interceptor`."""

    tells = True

    def __init__(self, addon: Addon) -> None:
        self._addon = addon

    @property
    def name(self) -> str:
        """The name of the addon's file, without its folder and ending."""
        return self._addon.name

    def edit(self, message: Message, lane: Lane) -> Returned:
        """What the hooks make of a message, one after another."""
        with self._addon.version() as version:
            calls = version.hooks.get(EDIT, ())
            if len(calls) == 1:
                return self._ask(calls[0], message, lane)
            passing: list[Message | Action] = [message]
            for call in calls:
                passing = [done for one in passing for done in self._further(call, one, message, lane)]
        return passing[0] if len(passing) == 1 else passing

    def edit_head(self, head: HttpHead) -> None:
        """Let the hooks change a head."""
        with self._addon.version() as version:
            for call in version.hooks.get(HEAD, ()):
                headers, status = list(head.headers), head.status
                try:
                    settled(call(head))
                except BaseException as error:  # noqa: BLE001 - nothing that an addon does may end the traffic
                    head.headers, head.status = headers, status
                    self._addon.complain(HEAD, error, "; heads pass as they are where it fails")
                    continue
                wrong = wrong_headers(head.headers, besides=headers)
                if not wrong and head.status != status and not _is_status(head.status, status):
                    wrong = f"the status {head.status}" if type(head.status) is int else "a status that is no number"
                if wrong:
                    head.headers, head.status = headers, status
                    self._addon.complain_of(HEAD, f"{HEAD} has left {wrong}; the head passes as it was")

    def begin(self, remark: Callable[[str], object]) -> None:
        """Traffic begins."""
        if remark not in ctx.captures:
            ctx.captures.append(remark)
        self._addon.begin()

    def end(self) -> Sequence[str]:
        """Traffic has ended."""
        return self._addon.end()

    def _further(self, call: Call, one: Message | Action, arrived: Message, lane: Lane) -> Sequence[Message | Action]:
        """What a hook makes of what an earlier one has let pass."""
        message = one.message if isinstance(one, Told | Headed) else one
        if not isinstance(message, Message):
            return [one]
        returned = self._ask(call, message, lane)
        if returned is message or (isinstance(returned, Told) and returned.message is message and not returned.why):
            return [one if returned is message or one is not message else returned]
        if returned is None:
            return []
        return several(returned, message, arrived)

    def _ask(self, call: Call, message: Message, lane: Lane) -> Returned:
        """What a hook says; the message itself as it was if it fails, or says nothing that can be done."""
        before = _Before(message)
        try:
            returned: Returned = call(message)
            if returned is message and not before.is_changed():
                return message
            returned = settled(returned, lane, self.name)
            wrong = misfit(returned) or _unwritable(returned, message, before)
        except GoneError:
            return before.restored()
        except BaseException as error:  # noqa: BLE001 - nothing that an addon does may end the traffic
            self._addon.complain(EDIT, error, PASSES)
            return before.restored()
        if wrong:
            self._addon.complain_of(EDIT, f"{EDIT} has returned {wrong}; the message passes as it was")
            return before.restored()
        if returned is None and message.method == "initialize":
            self._addon.complain_of(EDIT, f"{EDIT} returned None for initialize, which drops it: is a return missing?")
        return _attributed(returned, message, before)


class _Before:
    """What a message said before a hook had it."""

    __slots__ = ("_body", "_message", "_text")

    def __init__(self, message: Message) -> None:
        self._message = message
        self._text: bytes | None = None
        self._body: Any = None
        if not message.flaws:
            try:
                self._text = orjson.dumps(message.body)
            except TypeError:  # a number beyond 64 bits, or what another hook has put there
                self._text = None
        if self._text is None:
            self._body = message.body
            with suppress(Exception):  # what an earlier hook has put there need not be JSON, nor end
                self._body = copy.deepcopy(message.body)

    def is_changed(self) -> bool:
        """True if it says something else now."""
        try:
            if self._text is None:
                return bool(self._body != self._message.body)
            return orjson.dumps(self._message.body) != self._text
        except Exception:  # noqa: BLE001 - no JSON, as above
            return True

    def restored(self) -> Message:
        """The message, saying what it said."""
        if self.is_changed():
            self._message.body = self._body if self._text is None else orjson.loads(self._text)
        return self._message


def _unwritable(returned: Returned, message: Message, before: _Before) -> str:
    """What of that has no text in JSON, in words that follow "has returned"; empty if all has."""
    for one in returned if isinstance(returned, Sequence) else (returned,):
        inner = one if isinstance(one, Message) else getattr(one, "message", None)
        if inner is None or (inner is message and not before.is_changed()):
            continue
        try:
            with suppress(TypeError):
                if b"null" not in orjson.dumps(inner.body):  # which it writes for NaN, too
                    continue
            _ = patched(inner.raw, inner.body) if inner.raw else text_of(inner.body)
        except Exception as error:  # noqa: BLE001 - whatever stands there
            return f"what cannot be written as JSON ({described(error)})"
    return ""


def _attributed(returned: Returned, message: Message, before: _Before) -> Returned:
    """``returned``, where a message that was changed in place says that it was."""
    if returned is message:
        if not before.is_changed():
            return message
        _follow(message)
        return Told(message)
    if not isinstance(returned, list | tuple):
        return returned
    if any(one is message for one in returned) and before.is_changed():
        _follow(message)
        return [Told(message) if one is message else one for one in returned]
    return list(returned)


def _follow(message: Message) -> None:
    """Let the message's method be what its body says, for those who have it next."""
    method = message.body.get("method") if isinstance(message.body, dict) else None
    message.method = method if isinstance(method, str) else None


def _is_status(status: Any, before: int | None) -> bool:
    return before is not None and type(status) is int and 100 <= status <= 999
