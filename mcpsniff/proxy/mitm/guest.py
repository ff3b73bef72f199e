"""A tap in a mitmproxy that belongs to its user: other addons, its pages and its filters go on working.

So only event streams are made to stream, since nothing may wait for their end, and what streams anyway. Any other body
is noted when it is whole, which is before mitmproxy sends it on.
"""

from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from mitmproxy.connection import Client
from mitmproxy.http import HTTPFlow, Message

from mcpsniff.protocol.http import EVENT_STREAM, media_type
from mcpsniff.proxy.mitm.select import Select
from mcpsniff.proxy.mitm.tap import Tap, Verdict
from mcpsniff.proxy.say import say

if TYPE_CHECKING:
    from mcpsniff.proxy.mitm.edit_guest import GuestEditor

type Streamer = Callable[[bytes], Iterable[bytes] | bytes]


class Guest:
    """Notes with ``tap`` what passes, and lets ``select`` learn from it: an addon whose hooks do not raise.

    Its ``last`` is to be an addon behind all others, which may replace the callbacks that stood there before.
    """

    def __init__(self, tap: Tap, select: Select, editor: "GuestEditor | None" = None) -> None:
        self.last = Last(self)
        self.loaded = self.missed = 0
        """How many exchanges were loaded from a file, and how many bodies passed that were never given to this."""
        self._tap = tap
        self._select = select
        self._editor = editor
        self._whole: dict[tuple[str, bool], Streamer] = {}
        """What is to be given each body that does not stream, by the flow's id and whether it is the request's."""
        self._given: dict[tuple[str, bool], Given] = {}
        """What is given each body as it streams, likewise."""
        self._answered: set[str] = set()

    def requestheaders(self, flow: HTTPFlow) -> None:
        """See mitmproxy; a flow that was loaded from a file is no traffic."""
        if flow.live:
            before = flow.request.stream
            self._tap.requestheaders(flow)
            self._share(flow, flow.request, before)
        else:
            self.loaded += 1

    def request(self, flow: HTTPFlow) -> Coroutine[Any, Any, None] | None:
        """See mitmproxy, which waits for edit hooks."""
        self._note(flow, flow.request)
        if self._editor is not None and flow.live and self._editor.is_on and self._tap.judge(flow) is Verdict.KEEP:
            return self._edited(self._editor.request(flow), lambda: self._tap.request(flow))
        self._tap.request(flow)
        return None

    def responseheaders(self, flow: HTTPFlow) -> Coroutine[Any, Any, None] | None:
        """See mitmproxy, which waits for edit hooks."""
        self._answering(flow)
        given = self._given.get((flow.id, False))
        is_edited = self._editor is not None and self._editor.is_on and self._tap.verdict(flow) is not Verdict.DROP
        if self._editor is None or given is None or flow.response is None or not is_edited:
            return None
        if not _is_stream(flow, flow.response):
            return None
        return self._edited(self._let_edit(self._editor, flow, given), lambda: None)

    def _answering(self, flow: HTTPFlow) -> None:
        """The head of a response is there."""
        if flow.response is None or not flow.live:
            return
        self._answered.add(flow.id)
        before = flow.response.stream
        self._tap.responseheaders(flow)
        with suppress(Exception):  # it only learns
            self._select.responseheaders(flow)
        self._share(flow, flow.response, before)

    def response(self, flow: HTTPFlow) -> Coroutine[Any, Any, None] | None:
        """See mitmproxy, which waits for edit hooks; a response that an addon has made has no other hook."""
        if flow.id not in self._answered:
            self._answering(flow)
        is_stream = flow.response is None or _is_stream(flow, flow.response)
        if flow.response is not None:
            self._note(flow, flow.response)
        is_ours = self._editor is not None and not is_stream and self._tap.verdict(flow) is Verdict.KEEP
        if self._editor is not None and is_ours and self._editor.is_on:
            return self._edited(self._editor.response(flow), lambda: self._over(flow))
        self._over(flow)
        return None

    def _over(self, flow: HTTPFlow) -> None:
        self._tap.response(flow)
        self._forget(flow)

    async def _edited(self, editing: Coroutine[Any, Any, None], then: Callable[[], None]) -> None:
        """Let edit hooks have something, and go on, whatever comes of it."""
        try:
            await editing
        except Exception as error:  # noqa: BLE001 - a bug of ours: the traffic goes on
            say(f"internal error while editing: {error!r}; the traffic goes on")
        finally:
            then()

    async def _let_edit(self, editor: "GuestEditor", flow: HTTPFlow, given: "Given") -> None:
        """Let edit hooks have an event stream before anybody else."""
        edited = await editor.stream(flow, given.tapped)
        if edited is not None:
            given.tapped = edited

    def error(self, flow: HTTPFlow) -> None:
        """See mitmproxy."""
        for message in (flow.request, flow.response):
            if message is not None:
                self._look_for_loss(flow, message)
        self._tap.error(flow)
        self._forget(flow)

    def client_disconnected(self, client: Client) -> None:
        """See mitmproxy."""
        self._tap.client_disconnected(client)

    def again(self, flow: HTTPFlow, message: Message) -> None:
        """See whether another addon has changed how a body streams, after this had arranged it."""
        key = flow.id, message is flow.request
        given, whole, now = self._given.pop(key, None), self._whole.pop(key, None), message.stream
        tapped = whole if given is None else given.tapped
        if tapped is None:
            return
        if now is given or (given is None and not now):
            self._put(key, given, whole)
        elif callable(now) or now:
            if given is not None:
                given.tapped = _passed  # if the other one calls it
            self._put(key, Given(tapped, now if callable(now) else None), None)
            message.stream = self._given[key]
        else:
            self._put(key, None, tapped)

    def _put(self, key: tuple[str, bool], given: "Given | None", whole: Streamer | None) -> None:
        if given is not None:
            self._given[key] = given
        elif whole is not None:
            self._whole[key] = whole

    def _share(self, flow: HTTPFlow, message: Message, before: Any) -> None:
        """Let a body stream into the tap if it streams at all, else be given to it when it is whole."""
        tapped = message.stream
        key = flow.id, message is flow.request
        message.stream = before
        if not callable(tapped) or tapped is before:
            return
        if before or _is_stream(flow, message):
            message.stream = self._given[key] = Given(tapped, before if callable(before) else None)
        else:
            self._whole[key] = tapped

    def _note(self, flow: HTTPFlow, message: Message) -> None:
        """Give the tap a body that did not stream."""
        self._look_for_loss(flow, message)
        noted = self._whole.pop((flow.id, message is flow.request), None)
        if noted is None:
            return
        with suppress(Exception):
            if message.raw_content is None:
                self._miss(flow, message)
            elif message.raw_content:
                noted(message.raw_content)
            noted(b"")

    def _look_for_loss(self, flow: HTTPFlow, message: Message) -> None:
        """Admit a body that was to stream into the tap, and did not."""
        given = self._given.pop((flow.id, message is flow.request), None)
        if given is not None and message.stream is not given:
            self._miss(flow, message)

    def _miss(self, flow: HTTPFlow, message: Message) -> None:
        self.missed += 1
        self._tap.missed(flow, "another addon let it stream", is_request=message is flow.request)

    def _forget(self, flow: HTTPFlow) -> None:
        self._answered.discard(flow.id)
        for is_request in (True, False):
            self._whole.pop((flow.id, is_request), None)
            self._given.pop((flow.id, is_request), None)


class Last:
    """The hooks of a `Guest` that have to run after those of all other addons."""

    name = "mcp_capture_last"

    def __init__(self, guest: Guest) -> None:
        self._guest = guest

    def requestheaders(self, flow: HTTPFlow) -> None:
        """See mitmproxy."""
        self._guest.again(flow, flow.request)

    def responseheaders(self, flow: HTTPFlow) -> None:
        """See mitmproxy."""
        if flow.response is not None:
            self._guest.again(flow, flow.response)


class Given:
    """A streaming callback: gives each piece to ``tapped``, then lets ``other`` change it, if there is one."""

    def __init__(self, tapped: Streamer, other: Streamer | None) -> None:
        self.tapped = tapped
        self._other = other

    def __call__(self, data: bytes) -> Iterable[bytes] | bytes:
        """Take a piece, or nothing at the end."""
        passed, other = self.tapped(data), self._other
        if other is None:
            return passed
        if passed is data:
            return other(data)
        pieces = [passed] if isinstance(passed, bytes) else passed
        return [out for piece in [*filter(None, pieces), *([] if data else [b""])] for out in _several(other(piece))]


def _several(passed: Iterable[bytes] | bytes) -> Iterable[bytes]:
    return passed if not isinstance(passed, bytes) else [passed] if passed else []


def _passed(data: bytes) -> bytes:
    return data


def _is_stream(flow: HTTPFlow, message: Message) -> bool:
    return message is flow.response and media_type(message.headers.get("content-type", "")) == EVENT_STREAM
