"""Edit hooks in a mitmproxy that belongs to its user: bodies of requests and answers are held when they are whole.

mitmproxy waits for the hooks of its addons one exchange at a time, so a message may be held there as long as anybody
likes. An event stream it passes on piece by piece, and waits for nothing there: see `edit_stream`.
"""

import asyncio
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final, NamedTuple

from mitmproxy.http import HTTPFlow, Message

from mcpsniff.decoder.bodies import is_like_a_message
from mcpsniff.hooks.actions import HttpHead
from mcpsniff.hooks.editor import Edit, Editor
from mcpsniff.hooks.events import EDITING
from mcpsniff.hooks.interceptor import HEAD, AddonInterceptor
from mcpsniff.hooks.talk import Talk
from mcpsniff.protocol.endpoints import resolved
from mcpsniff.protocol.http import SESSION_HEADER
from mcpsniff.protocol.reading import JsonReader
from mcpsniff.proxy.mitm.edit_leaving import Leaving
from mcpsniff.proxy.mitm.edit_stream import EditedStream
from mcpsniff.proxy.mitm.exchange import REQUEST, RESPONSE
from mcpsniff.proxy.mitm.scripts import Scripts, StockAddon
from mcpsniff.proxy.mitm.tap import Tap, Verdict
from mcpsniff.proxy.relay import edit_records
from mcpsniff.proxy.relay.edit_records import LIMIT, LONG_US, NOTABLE_US
from mcpsniff.wire.frames import Frame, Span

SESSIONS: Final = 10_000
"""Sessions that are remembered."""
TOO_LARGE: Final = f"a message of more than {LIMIT >> 20} MiB passed unedited"
STREAMS: Final = "a body that mitmproxy was told to stream (by another addon, or stream_large_bodies) passes unedited"
CODED: Final = "an event stream with a content coding passes unedited under mitmproxy"

type Session = tuple[str, str]


class Held(NamedTuple):
    """A message that was held, and for how long."""

    frame: Frame
    edit: Edit | None
    us: int


class GuestEditor:
    """Gives what ``tap`` records to the edit hooks among ``scripts``. ``say`` is given sentences for the user."""

    def __init__(self, tap: Tap, scripts: Scripts, say: Callable[[str], object]) -> None:
        self.editor = Editor([], say)
        self._tap = tap
        self._scripts = scripts
        self._known: dict[int, AddonInterceptor] = {}
        self._addons: list[StockAddon] = []
        self._sessions: OrderedDict[Session, Any] = OrderedDict()

    @property
    def is_on(self) -> bool:
        """True if there are edit hooks at the moment."""
        addons = self._scripts.having(EDITING)
        if any(one is not other for one, other in zip(addons, self._addons, strict=False)) or len(addons) != len(
            self._addons
        ):
            self._addons = addons
            known, self._known = self._known, {}
            for addon in addons:
                self._known[id(addon)] = known.get(id(addon)) or AddonInterceptor(addon)  # type: ignore[arg-type]
            self.editor.interceptors = list(self._known.values())
        return bool(addons)

    def is_ours(self, flow: HTTPFlow) -> bool | None:
        """True if an exchange is MCP, None if that is not known yet."""
        verdict = self._tap.verdict(flow)
        return None if verdict is Verdict.WAIT else verdict is Verdict.KEEP

    # -- what is held ----------------------------------------------------------------------------------------------

    async def request(self, flow: HTTPFlow) -> None:
        """A request is there, with all of its body: let it leave as the hooks say."""
        self._tap.whole(flow, REQUEST)
        held = await self._held(flow, flow.request, "c2s")
        leaving = Leaving(flow, self._tap, self.editor)
        if held is not None:
            await leaving.request(held.frame, held.edit, held.us)
        if flow.response is None and flow.error is None:
            await self._head(flow, flow.request, "c2s")

    async def response(self, flow: HTTPFlow) -> None:
        """A response is there, with all of its body."""
        response = flow.response
        if response is None:
            return
        self._learn(flow)
        self._tap.whole(flow, RESPONSE)
        held = await self._held(flow, response, "s2c")
        if held is not None:
            await Leaving(flow, self._tap, self.editor).response(held.edit, held.us)
        await self._head(flow, response, "s2c")

    async def stream(self, flow: HTTPFlow, noted: Callable[[bytes], object]) -> EditedStream | None:
        """The head of an event stream is there: return what edits it; None if nothing can."""
        response = flow.response
        if response is None:
            return None
        self._learn(flow)
        await self._head(flow, response, "s2c")
        if response.headers.get("content-encoding", "identity").strip().lower() != "identity":
            self.editor.tell_once(CODED)
            return None
        if "content-length" in response.headers:
            del response.headers["content-length"]
            if flow.request.http_version == "HTTP/1.1":
                response.headers["transfer-encoding"] = "chunked"
        talk = self._talk(flow)
        return EditedStream(
            self.editor,
            talk,
            noted,
            is_ours=lambda: self.is_ours(flow),
            is_gone=lambda: not flow.client_conn.connected,
            put=lambda what: self._tap.put(flow, RESPONSE, "rewrite", what),
            endpoint=lambda reference: self._keep((_origin(flow), resolved(flow.request.path, reference)), talk),
        )

    async def _held(self, flow: HTTPFlow, message: Message, direction: str) -> Held | None:
        """Give the message in a body to the hooks; None if there is none."""
        if message.raw_content is None or len(message.raw_content) > LIMIT:
            self.editor.tell_once(STREAMS if message.raw_content is None else TOO_LARGE)
            return None
        try:
            text = message.get_content(strict=True)
        except ValueError:
            return None
        if text is None or not is_like_a_message(text):
            return None
        t = (self._tap.recorder.clock() - self._tap.recorder.zero_ns) // 1000
        span = Span(0, 0, len(message.raw_content))
        frame = Frame(0, direction, "body", (span,), t, t, text, len(text))
        body = REQUEST if direction == "c2s" else RESPONSE
        loop = asyncio.get_running_loop()

        def begin(by: str, why: str) -> None:
            what = edit_records.hold(0, span.stop, 0, by, why)
            with suppress(RuntimeError):  # it has ended
                loop.call_soon_threadsafe(self._tap.put, flow, body, "hold", what)

        talk, lane = self._talk(flow), _Lane(flow, self.editor, begin)

        def edited() -> Held:
            began = time.monotonic_ns()
            edit = self.editor.edit(frame, talk, lane, JsonReader())
            return Held(frame, edit, lane.worth((time.monotonic_ns() - began) // 1000))

        return await self._in_thread(edited)

    async def _head(self, flow: HTTPFlow, message: Message, direction: str) -> None:
        """Let hooks change the head of a request or response."""
        if not any(HEAD in version.hooks for addon in self._addons for version in [_now(addon)]):
            return
        response = flow.response if direction == "s2c" else None
        status = None if response is None else response.status_code
        before = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in message.headers.fields]
        head = HttpHead(direction, flow.request.method, flow.request.path, status, list(before))
        head.conversation = self._talk(flow).number
        await self._in_thread(lambda: self.editor.edit_head(head))
        if head.headers == before and head.status == status:
            return
        message.headers.fields = tuple(
            [(name.encode("latin-1", "replace"), value.encode("latin-1", "replace")) for name, value in head.headers]
        )
        if response is not None and head.status is not None:
            response.status_code = head.status
        names = sorted({name.lower() for name, _ in {*before} ^ {*head.headers}})
        what = [f"status {status}, now {head.status}"] * (head.status != status) + names
        text = f"the head was changed by {self._names(HEAD)}: {', '.join(what)}"
        self._tap.put(flow, REQUEST if direction == "c2s" else RESPONSE, "comment", {"text": text, "by": "mcpsniff"})

    def _names(self, hook: str) -> str:
        return ", ".join([addon.name for addon in self._addons if hook in _now(addon).hooks])

    async def _in_thread[T](self, what: Callable[[], T]) -> T:
        """Do something in a thread of its own, which nobody waits for when mitmproxy ends."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()

        def tell(outcome: Callable[[], object]) -> None:
            with suppress(RuntimeError):  # it has ended
                loop.call_soon_threadsafe(lambda: None if done.done() else outcome())

        def run() -> None:
            try:
                result = what()
            except Exception as error:  # noqa: BLE001 - raised where it is waited for
                failure = error
                tell(lambda: done.set_exception(failure))
            else:
                tell(lambda: done.set_result(result))

        threading.Thread(target=run, name="edit hooks", daemon=True).start()
        return await done

    # -- conversations ---------------------------------------------------------------------------------------------

    def _talk(self, flow: HTTPFlow) -> Talk:
        """The conversation that an exchange belongs to, which is that of its request."""
        origin, named = _origin(flow), flow.request.headers.get(SESSION_HEADER)
        known = self._sessions.get((origin, flow.request.path)) or self._sessions.get((origin, f"session {named}"))
        if known is not None:
            return known  # type: ignore[no-any-return]
        return self.editor.talk((origin, flow.client_conn.id if named is None else f"session {named}"))

    def _learn(self, flow: HTTPFlow) -> None:
        """A response may name the session."""
        named = None if flow.response is None else flow.response.headers.get(SESSION_HEADER)
        if named is not None:
            self._keep((_origin(flow), f"session {named}"), self._talk(flow))

    def _keep(self, key: Session, talk: Talk) -> None:
        self._sessions.setdefault(key, talk)
        if len(self._sessions) > SESSIONS:
            self._sessions.popitem(last=False)


class _Lane:
    """See `mcpsniff.hooks.editor.Lane`: mitmproxy waits for whoever holds a body."""

    transport = "http"

    def __init__(self, flow: HTTPFlow, editor: Editor, begin: Callable[[str, str], object]) -> None:
        self._flow = flow
        self._editor = editor
        self._begin = begin
        self._was_held = self._is_told = False

    @contextmanager
    def holding(self) -> Iterator[None]:
        """Nothing else is to be read meanwhile."""
        self._was_held = True
        yield

    def held(self, by: str, why: str = "") -> None:
        """See `Lane`."""
        self._is_told = True
        self._begin(by, why)

    def worth(self, us: int) -> int:
        """Of so many microseconds in hooks, what is to be told: all, or nothing where they may be a busy machine."""
        if self._is_told:
            return max(us, NOTABLE_US + 1)
        return us if self._was_held or us > LONG_US else 0

    @property
    def is_gone(self) -> bool:
        """See `Lane`."""
        return not self._flow.client_conn.connected

    def late(self, out: Any) -> None:
        """See `Lane`: a body that has left cannot be followed by another message."""
        self._editor.tell_once(f"{out.by}: a message that was kept back got lost, as mitmproxy has no place for it")


def _now(addon: StockAddon) -> Any:
    with addon.version() as version:
        return version


def _origin(flow: HTTPFlow) -> str:
    request = flow.request
    return f"{request.scheme}://{request.host}:{request.port}"
