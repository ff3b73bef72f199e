"""What leaves in the place of a body that a stock mitmproxy holds: another body, another status, or nothing."""

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from typing import Final

from mitmproxy.http import Headers, HTTPFlow, Message, Response
from mitmproxy.net.http import http1

from mcpsniff.hooks.actions import Disconnect, HttpAnswer, Raw, Stall, Text
from mcpsniff.hooks.editor import ADDED, BACK, SAME, Edit, Editor, Outgoing
from mcpsniff.protocol.http import EVENT_STREAM, SESSION_HEADER
from mcpsniff.protocol.message import REQUEST as A_REQUEST
from mcpsniff.protocol.reading import JsonReader
from mcpsniff.proxy.mitm.exchange import REQUEST, RESPONSE
from mcpsniff.proxy.mitm.tap import Tap
from mcpsniff.proxy.relay import edit_records
from mcpsniff.proxy.relay.edit_records import NOTABLE_US
from mcpsniff.proxy.relay.web.events import made
from mcpsniff.proxy.relay.web.heads import DIGESTS
from mcpsniff.proxy.relay.web.routing import made_true
from mcpsniff.wire.frames import Frame

LOOK: Final = 0.1
"""Seconds between two looks at whether a client is still there that waits in vain."""
NOT_HERE: Final = "under mitmproxy that cannot be done with a body, which passes as it was"
NO_OTHER: Final = "under mitmproxy no message can be added to a body; it is not sent"
NO_BACK: Final = "under mitmproxy nothing can be said back beside a message that passes; it is not said"


class Leaving:
    """Lets the messages of ``flow`` leave as they were edited, and has ``tap`` record what left."""

    def __init__(self, flow: HTTPFlow, tap: Tap, editor: Editor) -> None:
        self._flow = flow
        self._tap = tap
        self._editor = editor

    async def request(self, frame: Frame, edit: Edit | None, us: int) -> None:
        """A request, whose body was ``frame``."""
        request = self._flow.request
        if edit is None:
            self._held(REQUEST, request, us)
            return
        passing = self._passing(edit)
        if passing is not None:
            await self._carried(REQUEST, request, passing, us)
            if passing.message is not None and passing.what != SAME and self._flow.response is None:
                headers = _pairs(request.headers)
                made_true(headers, JsonReader().read(frame.payload).value, passing.message, OrderedDict())
                _set(request.headers, headers)
            return
        backs = [out for out in edit.leaving if out.what == BACK]
        self._put(REQUEST, request, b"", edit, us)
        if backs:
            self._answer(self._saying(backs), backs[0].by, backs[0].why)
        elif b'"method"' in frame.payload and _wants_answer(frame):
            await self._never()
        else:
            self._answer(Response.make(202, b"", {"Content-Length": "0"}), edit.by, edit.why)

    async def response(self, edit: Edit | None, us: int) -> None:
        """A response."""
        response = self._flow.response
        if response is None:
            return
        if edit is None:
            self._held(RESPONSE, response, us)
            return
        passing = self._passing(edit)
        if passing is not None:
            await self._carried(RESPONSE, response, passing, us)
            return
        self._put(RESPONSE, response, b"", edit, us)
        await self._never()

    # -- inside ----------------------------------------------------------------------------------------------------

    def _passing(self, edit: Edit) -> Outgoing | None:
        """What leaves in the message's own place, if anything does."""
        passing = next((out for out in edit.leaving if out.what not in (BACK, ADDED)), None)
        for out in edit.leaving:
            if out.what == ADDED:
                self._editor.tell_once(f"{out.by}: {NO_OTHER}")
            elif out.what == BACK and passing is not None:
                self._editor.tell_once(f"{out.by}: {NO_BACK}")
        return passing

    async def _carried(self, body: int, message: Message, out: Outgoing, us: int) -> None:
        """Let something leave in the place of a message."""
        action, data = out.action, out.data
        if isinstance(action, HttpAnswer):
            self._replaced_by(body, message, action, out)
            return
        if isinstance(action, Disconnect):
            self._put(body, message, b"", out, us)
            self._flow.kill()  # type: ignore[no-untyped-call]
            return
        if isinstance(action, Stall):
            self._put(body, message, b"", out, us)
            await self._never()
            return
        if isinstance(action, Text | Raw):
            data = action.data
        elif action is not None:
            self._editor.tell_once(f"{out.by}: {NOT_HERE} ({type(action).__name__})")
            data = message.get_content(strict=False) or b""
        _change(message.headers, out.headers)
        if data == message.get_content(strict=False):
            self._held(body, message, us, out.by, out.why)
            return
        length = len(message.raw_content or b"")
        message.content = data
        for name in DIGESTS:
            message.headers.pop(name, None)
        what = edit_records.rewrite(0, length, message.raw_content or b"", out.by, out.why, us=us)
        self._tap.put(self._flow, body, "rewrite", what)

    def _replaced_by(self, body: int, message: Message, action: HttpAnswer, out: Outgoing) -> None:
        answer = Response.make(action.status, action.body, Headers([(_b(n), _b(v)) for n, v in action.headers]))
        if body == REQUEST:
            self._put(REQUEST, message, b"", out, 0)
            self._answer(answer, out.by, out.why)
            return
        self._put(RESPONSE, message, action.body, out, 0)
        self._flow.response = answer

    def _answer(self, answer: Response, by: str, why: str) -> None:
        """Answer the request in the server's place."""
        head = http1.assemble_response_head(answer)  # type: ignore[no-untyped-call]
        told = {"by": by, **({"why": why} if why else {})}
        content = head + (answer.raw_content or b"")
        self._tap.answered(self._flow, content, f"{by} answered in the server's place", told)
        self._flow.response = answer

    def _saying(self, backs: list[Outgoing]) -> Response:
        """A response that says some messages."""
        accepts = self._flow.request.headers.get("accept", "").lower()
        headers = {}
        session = self._flow.request.headers.get(SESSION_HEADER)
        if session is not None:
            headers["Mcp-Session-Id"] = session
        if len(backs) == 1 and (not accepts or "json" in accepts or "*/*" in accepts):
            return Response.make(200, backs[0].data, {"Content-Type": "application/json", **headers})
        body = b"".join([made(out.data, b"\n") for out in backs])
        return Response.make(200, body, {"Content-Type": EVENT_STREAM, **headers})

    async def _never(self) -> None:
        """Let the client wait until it leaves."""
        while self._flow.client_conn.connected:
            await asyncio.sleep(LOOK)
        self._flow.kill()  # type: ignore[no-untyped-call]

    # -- records ---------------------------------------------------------------------------------------------------

    def _held(self, body: int, message: Message, us: int, by: str = "", why: str = "") -> None:
        """A message leaves as it came, but later."""
        if us > NOTABLE_US:
            what = edit_records.hold(0, len(message.raw_content or b""), us, by or self._editor.holder, why)
            self._tap.put(self._flow, body, "hold", what)

    def _put(self, body: int, message: Message, data: bytes, out: Outgoing | Edit, us: int) -> None:
        """``data`` is about to leave in the place of the body that ``message`` still has."""
        what = edit_records.rewrite(0, len(message.raw_content or b""), data, out.by, out.why, us=us)
        self._tap.put(self._flow, body, "rewrite", what)


def _wants_answer(frame: Frame) -> bool:
    """True if a body has a request in it."""
    from mcpsniff.protocol.jsonrpc import classify

    return any(message.kind == A_REQUEST for message in classify(frame, JsonReader()))


def _pairs(headers: Headers) -> list[tuple[str, str]]:
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers.fields]


def _set(headers: Headers, pairs: list[tuple[str, str]]) -> None:
    headers.fields = tuple([(_b(name), _b(value)) for name, value in pairs])


def _change(headers: Headers, changes: Mapping[str, str | None]) -> None:
    for name, value in changes.items():
        if value is None:
            headers.pop(name, None)
        else:
            headers[name] = value


def _b(text: str) -> bytes:
    return text.encode("latin-1", "replace")
