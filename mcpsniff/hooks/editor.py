"""The editor: gives each message that is held to the edit hooks, one after another, and says what leaves in its place.

It knows no transport. A shell (`mcpsniff.proxy.relay`) cuts frames, holds one at a time in the thread of its direction,
calls `Editor.edit`, and writes what that returns. Nothing returned (None) means that nobody wants anything else: the
bytes go on as they came.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from threading import Lock
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Protocol

from mcpsniff.hooks.actions import Action, Back, Drop, Headed, HttpHead, Later, Returned, Text, Told, is_made
from mcpsniff.hooks.later import Keeper
from mcpsniff.protocol.exchange import OTHER, Exchange, target_of, token_key
from mcpsniff.protocol.jsonrpc import classify
from mcpsniff.protocol.message import BATCH, ERROR, REQUEST, RESPONSE, IdKey, Message
from mcpsniff.protocol.outline import outline
from mcpsniff.protocol.patch import patched, text_of
from mcpsniff.protocol.reading import JsonReader
from mcpsniff.wire.frames import EMPTY_LINE, Frame

OPEN_LIMIT: Final = 100_000
"""Requests without an answer, of one conversation, that are remembered."""
TALKS_LIMIT: Final = 10_000
"""Conversations that are remembered."""

SAME: Final = "same"
"""The frame as it came."""
CHANGED: Final = "changed"
"""Something in the frame's place."""
ADDED: Final = "added"
"""Something besides, before or after it."""
BACK: Final = "back"
"""Something for the side that the frame came from."""
ANSWER_KEPT: Final = "the answer to a request that it had made"


class Lane(Protocol):
    """One direction of one pipe, body or stream, in whose thread a message is held. The shells have one each."""

    @property
    def transport(self) -> str:
        """``stdio`` or ``http``."""

    def holding(self) -> AbstractContextManager[object]:
        """To be entered while a hook waits on purpose: what arrives meanwhile is still noted when it arrives."""

    @property
    def is_gone(self) -> bool:
        """True once nobody is there any more to whom the message could go: whoever holds it may give up."""

    def late(self, out: "Outgoing") -> object:
        """From any thread: let this leave (ADDED) between two messages of the stream, unless that has ended."""


class Interceptor(Protocol):
    """What may change messages: an addon, a rule, a fault, a break point."""

    @property
    def name(self) -> str:
        """Who it is, in records and transcripts."""

    def edit(self, message: Message, lane: Lane) -> Returned:
        """See `mcpsniff.hooks.events.McpEdit`. Does not raise; may block, and is called in several threads at once."""

    def edit_head(self, head: HttpHead) -> None:
        """See `mcpsniff.hooks.events.McpEditHead`. Does not raise."""

    def begin(self, remark: Callable[[str], object]) -> None:
        """Traffic begins; ``remark`` writes a sentence into the capture, from any thread."""

    def end(self) -> Sequence[str]:
        """Traffic has ended: what the user is to be told, such as a rule that matched nothing."""


class Outgoing(NamedTuple):
    """Something that leaves in the place of a frame, or beside it."""

    what: str
    """One of SAME, CHANGED, ADDED, BACK."""
    by: str
    why: str
    data: bytes
    """The JSON text of the message; nothing where ``action`` has no message."""
    message: Message | None
    action: Action | None = None
    """How it goes: `Cut`, `Paced`, `Raw`, `HttpAnswer`, `Stall` or `Disconnect`; None: in the transport's framing."""
    headers: Mapping[str, str | None] = MappingProxyType({})
    """Other headers of HTTP for it."""


class Edit(NamedTuple):
    """What becomes of a frame. If nothing of ``leaving`` is SAME or CHANGED the frame is dropped."""

    by: str
    why: str
    leaving: list[Outgoing]

    @property
    def passes(self) -> bool:
        """True if the frame itself goes on, as it came or changed."""
        return any(out.what in (SAME, CHANGED) for out in self.leaving)


@dataclass(slots=True)
class _Item:
    """Something on its way through the interceptors."""

    what: Message | Action
    by: str = ""
    why: str = ""
    headers: dict[str, str | None] = field(default_factory=dict)


class Talk:
    """What the editor remembers of one conversation. See `Editor.talk`."""

    def __init__(self, number: int) -> None:
        self.number = number
        self._open: dict[tuple[str, IdKey], Exchange] = {}
        self._tokens: dict[tuple[str, IdKey], Exchange] = {}
        self._ours: dict[tuple[str, IdKey], str] = {}
        """Requests that hooks have made, by the direction they went and their id; who made them."""
        self._made = 0
        self._lock = Lock()

    def place(self, message: Message, t: int) -> None:
        """Set what is known of a message because of what came before it: conversation, link, time."""
        message.conversation, message.t = self.number, t
        if message.kind == REQUEST and message.key is not None and message.method is not None:
            link = Exchange(
                0, self.number, message.direction, message.id or "", message.key, message.method, target_of(message),
                None, t, t_alive=t,
            )  # fmt: skip
            message.link = link
            self._enter(message, link)
        elif message.kind in (RESPONSE, ERROR) and message.key is not None:
            with self._lock:
                answered = self._open.pop((OTHER[message.direction], message.key), None)
                message.link = answered
                if answered is not None and answered.token is not None:
                    self._tokens.pop((answered.direction, answered.token), None)
            if answered is not None and answered.cancel is None:
                answered.t_end, answered.response = t, 0
        elif message.method == "notifications/progress":
            token = token_key(message.params.get("progressToken"))
            if token is not None:
                message.link = self._tokens.get((OTHER[message.direction], token))
        elif message.method == "notifications/cancelled":
            key = token_key(message.params.get("requestId"))
            if key is not None:
                message.link = cancelled = self._open.get((message.direction, key))
                if cancelled is not None:
                    cancelled.cancel = 0

    def made_by(self, message: Message) -> str | None:
        """Who has made the request that this answers; None if the other side has. Asked once."""
        if not self._ours or message.kind not in (RESPONSE, ERROR) or message.key is None:
            return None
        with self._lock:
            return self._ours.pop((OTHER[message.direction], message.key), None)

    def adopt(self, message: Message, direction: str, by: str) -> None:
        """Give a request that a hook has made an id that nobody else uses."""
        with self._lock:
            self._made += 1
            message.id, message.key = f'"mcpsniff-{self._made}"', f"mcpsniff-{self._made}"
            while (direction, message.key) in self._open:
                self._made += 1
                message.id, message.key = f'"mcpsniff-{self._made}"', f"mcpsniff-{self._made}"
            self._ours[direction, message.key] = by
        body = message.body
        message.body = {"jsonrpc": "2.0", "id": message.key, **{k: v for k, v in body.items() if k != "jsonrpc"}}

    def _enter(self, message: Message, link: Exchange) -> None:
        with self._lock:
            self._open[link.direction, link.key] = link
            if len(self._open) > OPEN_LIMIT:
                del self._open[next(iter(self._open))]
            token = token_key(message.meta.get("progressToken"))
            if token is not None:
                link.token = token
                self._tokens[link.direction, token] = link
                if len(self._tokens) > OPEN_LIMIT:
                    del self._tokens[next(iter(self._tokens))]


class Editor:
    """Gives messages to ``interceptors`` in their order. May be used by many threads at once, a `JsonReader` each."""

    def __init__(self, interceptors: Sequence[Interceptor], say: Callable[[str], object]) -> None:
        """``say`` is given a sentence about what went wrong."""
        self.interceptors = list(interceptors)
        self._say = say
        self._told: set[str] = set()
        self._talks: OrderedDict[Any, Talk] = OrderedDict()
        self._numbers = 0
        self._lock = Lock()
        self._keeper = Keeper()

    def talk(self, key: Any) -> Talk:
        """The conversation that a shell knows by ``key``: a session id, or a connection where there is none."""
        with self._lock:
            found = self._talks.get(key)
            if found is None:
                self._numbers += 1
                found = self._talks[key] = Talk(self._numbers)
                if len(self._talks) > TALKS_LIMIT:
                    self._talks.popitem(last=False)
            else:
                self._talks.move_to_end(key)
            return found

    def edit(self, frame: Frame, talk: Talk, lane: Lane, reader: JsonReader) -> Edit | None:
        """What is to leave in the place of ``frame``; None: its bytes as they came. Does not raise."""
        if EMPTY_LINE in frame.flaws:
            return None
        whole, *elements = classify(frame, reader)
        earlier = self._keeper.of(lane)
        edit = self._batch(whole, elements, talk, lane) if whole.kind == BATCH else self._one(whole, talk, lane)
        if edit is not None and not edit.passes:
            return edit
        kept = self._keeper.passed((talk.number, frame.direction), earlier)
        if not kept:
            return edit
        leaving = [Outgoing(SAME, "", "", whole.raw, whole)] if edit is None else edit.leaving
        return Edit(kept[0].by, kept[0].why, leaving + kept) if edit is None else edit._replace(leaving=leaving + kept)

    def flush(self, lane: Lane) -> list[Outgoing]:
        """A stream is about to end: what is still to leave on it (ADDED). May wait for what is to overtake it."""
        return self._keeper.flush(lane)

    def edit_head(self, head: HttpHead) -> None:
        """Let interceptors change a head of HTTP."""
        for interceptor in self.interceptors:
            interceptor.edit_head(head)

    def begin(self, remark: Callable[[str], object]) -> None:
        """Traffic begins: see `Interceptor`."""
        for interceptor in self.interceptors:
            interceptor.begin(remark)

    def end(self) -> list[str]:
        """Traffic has ended: see `Interceptor`."""
        return [sentence for interceptor in self.interceptors for sentence in interceptor.end()]

    def tell_once(self, text: str) -> None:
        """Say something, unless it was said before."""
        if text not in self._told:
            self._told.add(text)
            self._say(text)

    # -- one message -----------------------------------------------------------------------------------------------

    def _one(self, message: Message, talk: Talk, lane: Lane) -> Edit | None:
        by = talk.made_by(message)
        if by is not None:
            return Edit(by, ANSWER_KEPT, [])
        talk.place(message, message.frame.t_last)
        items = [self._kept_back(item, message, talk, lane) for item in self._run(message, lane)]
        if len(items) == 1 and items[0].what is message:
            item = items[0]
            data = self._text(message, item.by)
            if data is message.raw and not item.headers and not item.why:
                return None
        return self._edit(message, items, talk)

    def _run(self, message: Message, lane: Lane) -> list[_Item]:
        """What the interceptors make of a message; the last item is empty-handed if it is dropped."""
        items = [_Item(message)]
        for interceptor in self.interceptors:
            through: list[_Item] = []
            for item in items:
                through += self._step(interceptor, item, lane) if isinstance(item.what, Message) else [item]
            items = through
        return items

    def _step(self, interceptor: Interceptor, item: _Item, lane: Lane) -> list[_Item]:
        message = item.what
        assert isinstance(message, Message)
        returned = interceptor.edit(message, lane)
        if returned is message:
            return [item]
        several: Sequence[Message | Action]
        several = () if returned is None else returned if isinstance(returned, Sequence) else (returned,)
        if not several:
            return [_Item(Drop(), interceptor.name, item.why)]
        items = []
        for one in several:
            if one is message:
                items.append(item)
                continue
            what = one.message if isinstance(one, Headed | Told) else one
            why = "" if isinstance(one, Message) else one.why
            headers = {**item.headers, **one.headers} if isinstance(one, Headed) else dict(item.headers)
            before = item.why if what is message or not isinstance(what, Message) else ""
            items.append(_Item(what, interceptor.name, "; ".join(filter(None, (before, why))), headers))
        return items

    def _kept_back(self, item: _Item, arrived: Message, talk: Talk, lane: Lane) -> _Item:
        """Wait with what is to leave later if it has a body for itself, else keep it and drop it here."""
        later, way = item.what, (talk.number, arrived.direction)
        if not isinstance(later, Later):
            return item
        if arrived.frame.framing == "body":
            self._keeper.wait(way, lane, later.seconds)
            return _Item(later.message, item.by, item.why, item.headers)
        out = self._outgoing(item, arrived, talk, takes_its_place=False)
        self._keeper.keep(out._replace(what=ADDED, action=None), way, lane, later.seconds)
        return _Item(Drop(), item.by, item.why)

    def _edit(self, arrived: Message, items: list[_Item], talk: Talk) -> Edit:
        """Give each item its role and its text."""
        dropped = next((item for item in items if isinstance(item.what, Drop)), None)
        items = [item for item in items if not isinstance(item.what, Drop)]
        is_here = any(_message(item.what) is arrived for item in items if not isinstance(item.what, Back))
        leaving: list[Outgoing] = []
        for item in items:
            out = self._outgoing(item, arrived, talk, takes_its_place=not is_here)
            is_here = is_here or out.what == CHANGED
            leaving.append(out)
        first = dropped or next((item for item in items if item.by), _Item(arrived))
        return Edit(first.by or self._editors(), first.why, leaving)

    def _outgoing(self, item: _Item, arrived: Message, talk: Talk, *, takes_its_place: bool) -> Outgoing:
        message = _message(item.what)
        action = None if isinstance(item.what, Message | Back | Text) else item.what
        is_back = isinstance(item.what, Back)
        direction = OTHER[arrived.direction] if is_back else arrived.direction
        if message is not None and message.kind == REQUEST and is_made(message) and "id" not in message.body:
            talk.adopt(message, direction, item.by)
        data = b"" if message is None else self._text(message, item.by)
        data = item.what.data if isinstance(item.what, Text) else data
        by = item.by or self._editors()
        if is_back:
            return Outgoing(BACK, by, item.why, data, message, None, item.headers)
        if message is arrived:
            what = SAME if data is arrived.raw and action is None else CHANGED
        else:
            what = CHANGED if takes_its_place else ADDED
        return Outgoing(what, by, item.why, data, message, action, item.headers)

    def _text(self, message: Message, by: str) -> bytes:
        """The JSON text of a message; ``raw`` itself if its body says what that says."""
        try:
            return patched(message.raw, message.body) if message.raw else text_of(message.body)
        except (TypeError, ValueError) as error:
            self.tell_once(
                f"{by or self._editors()}: a message cannot be written as JSON ({error}); it passes as it was"
            )
            return message.raw or b"null"

    def _editors(self) -> str:
        return self.interceptors[-1].name if len(self.interceptors) == 1 else "addons"

    # -- batches ---------------------------------------------------------------------------------------------------

    def _batch(self, whole: Message, elements: list[Message], talk: Talk, lane: Lane) -> Edit | None:
        """Each element goes its own way; what goes on is put together again."""
        on: list[bytes] = []
        beside: list[Outgoing] = []
        by, why = "", ""
        for element in elements:
            edit = self._one(element, talk, lane)
            if edit is None:
                on.append(element.raw)
                continue
            by, why = by or edit.by, why or edit.why
            for out in edit.leaving:
                if out.what == BACK or out.action is not None:
                    beside.append(out._replace(what=BACK if out.what == BACK else ADDED))
                else:
                    on.append(out.data)
        if not by:
            return None
        data = _joined(whole.raw, on)
        changed = [Outgoing(CHANGED, by, why, data, whole)] if on else []
        return Edit(by, why, changed + beside)


def _message(what: Message | Action) -> Message | None:
    return what if isinstance(what, Message) else getattr(what, "message", None)


def _joined(raw: bytes, elements: list[bytes]) -> bytes:
    """The array ``raw`` with other elements; what stands between them stays where their number does."""
    text = raw.decode(errors="surrogateescape")
    places = outline(text).elements
    if len(places) != len(elements):
        return b"[" + b",".join(elements) + b"]"
    for (start, stop), element in zip(reversed(places), reversed(elements), strict=True):
        text = text[:start] + element.decode(errors="surrogateescape") + text[stop:]
    return text.encode(errors="surrogateescape")
