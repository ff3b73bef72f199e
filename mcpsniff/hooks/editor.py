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
from time import monotonic_ns
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Protocol

from mcpsniff.hooks.actions import Action, Back, Drop, Headed, HttpHead, Later, Returned, Text, Told, is_made
from mcpsniff.hooks.later import Keeper
from mcpsniff.hooks.talk import Talk
from mcpsniff.protocol.exchange import OTHER
from mcpsniff.protocol.jsonrpc import BATCH_CUT, classify
from mcpsniff.protocol.message import BATCH, REQUEST, Message
from mcpsniff.protocol.outline import outline
from mcpsniff.protocol.patch import patched, text_of
from mcpsniff.protocol.reading import JsonReader
from mcpsniff.wire.frames import EMPTY_LINE, Frame

NOTABLE: Final = 1_000_000
"""Nanoseconds for which a message may be held without a word about it."""
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

    def held(self, by: str, why: str = "") -> object:
        """The message at hand is held from now on for longer than a moment: to be recorded as a hold that has begun."""

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
    text: bytes | None = None
    """Its JSON text, if that is known."""


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

    def edit_head(self, head: HttpHead) -> str:
        """Let interceptors change a head of HTTP; return who has, the last one if several have."""
        by = ""
        for interceptor in self.interceptors:
            headers, status = list(head.headers), head.status
            interceptor.edit_head(head)
            if head.headers != headers or head.status != status:
                by = interceptor.name
        return by

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
        run, slowest = self._run(message, lane)
        if run is None and self._text(message, "") is message.raw:
            by = slowest
            return None if by is None else Edit(by, "", [Outgoing(SAME, by, "", message.raw, message)])
        items = [self._kept_back(item, message, talk, lane) for item in run or (_Item(message),)]
        if len(items) == 1 and items[0].what is message:
            item = items[0]
            item.text = self._text(message, item.by)
            if item.text is message.raw and not item.headers and not item.why:
                if slowest is None:
                    return None
                item.by = slowest
        return self._edit(message, items, talk)

    def _run(self, message: Message, lane: Lane) -> tuple[list[_Item] | None, str | None]:
        """What the interceptors make of a message, and which of them held it longest, if that is worth a word.

        None: all of them have returned it.
        """
        items: list[_Item] | None = None
        slowest, most = None, NOTABLE
        began = monotonic_ns()
        for interceptor in self.interceptors:
            if items is None:
                returned = interceptor.edit(message, lane)
                if returned is not message:
                    items = self._made_of(_Item(message), message, returned, interceptor.name)
            else:
                items = [one for item in items for one in self._step(interceptor, item, lane)]
            now = monotonic_ns()
            if now - began >= most:
                slowest, most = interceptor.name, now - began
            began = now
        return items, slowest

    def _step(self, interceptor: Interceptor, item: _Item, lane: Lane) -> list[_Item]:
        """What one interceptor makes of what others have made."""
        message = item.what
        if not isinstance(message, Message):
            return [item]
        returned = interceptor.edit(message, lane)
        return [item] if returned is message else self._made_of(item, message, returned, interceptor.name)

    def _made_of(self, item: _Item, message: Message, returned: Returned, by: str) -> list[_Item]:
        """The items that somebody has put in the place of one."""
        several: Sequence[Message | Action]
        several = () if returned is None else returned if isinstance(returned, Sequence) else (returned,)
        if not several:
            return [_Item(Drop(), by, item.why)]
        items = []
        for one in several:
            if one is message:
                items.append(item)
                continue
            what = one.message if isinstance(one, Headed | Told) else one
            why = "" if isinstance(one, Message) else one.why
            headers = {**item.headers, **one.headers} if isinstance(one, Headed) else dict(item.headers)
            before = item.why if what is message or not isinstance(what, Message) else ""
            items.append(_Item(what, by, "; ".join(filter(None, (before, why))), headers))
        return items

    def _kept_back(self, item: _Item, arrived: Message, talk: Talk, lane: Lane) -> _Item:
        """Wait with what is to leave later if it has a body for itself, else keep it and drop it here."""
        later, way = item.what, (talk.number, arrived.direction)
        if not isinstance(later, Later):
            return item
        if arrived.frame.framing == "body":
            self._keeper.wait(way, lane, later.seconds, item.by, item.why)
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
        has_gone = False
        for item in items:
            out = self._outgoing(item, arrived, talk, takes_its_place=not is_here)
            is_here = is_here or out.what == CHANGED
            if out.what in (SAME, CHANGED):
                out = out._replace(what=ADDED) if has_gone else out  # once more
                has_gone = True
            leaving.append(out)
        first = dropped or next((item for item in items if item.by), _Item(arrived))
        return Edit(first.by or self._editors(), first.why, leaving)

    def _outgoing(self, item: _Item, arrived: Message, talk: Talk, *, takes_its_place: bool) -> Outgoing:
        message = _message(item.what)
        action = None if isinstance(item.what, Message | Back | Text) else item.what
        is_back = isinstance(item.what, Back)
        direction = OTHER[arrived.direction] if is_back else arrived.direction
        if message is not None and is_made(message):
            talk.fit(message, direction, arrived)
        if message is not None and message.kind == REQUEST and is_made(message) and "id" not in message.body:
            talk.adopt(message, direction, item.by)
        data = b"" if message is None else item.text or self._text(message, item.by)
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
        if BATCH_CUT in whole.flaws:
            on += _beyond(whole.raw, len(elements))
        data = _joined(whole.raw, on)
        what = SAME if data == whole.raw else CHANGED
        return Edit(by, why, [Outgoing(what, by, why, data, whole), *beside] if on else beside)


def _message(what: Message | Action) -> Message | None:
    return what if isinstance(what, Message) else getattr(what, "message", None)


def _beyond(raw: bytes, count: int) -> list[bytes]:
    """The elements of an array after the first ``count``, which nobody has looked at."""
    text = raw.decode(errors="surrogateescape")
    return [text[start:stop].encode(errors="surrogateescape") for start, stop in outline(text).elements[count:]]


def _joined(raw: bytes, elements: list[bytes]) -> bytes:
    """The array ``raw`` with other elements; what stands between them stays where their number does."""
    text = raw.decode(errors="surrogateescape")
    places = outline(text).elements
    if len(places) != len(elements):
        return b"[" + b",".join(elements) + b"]"
    for (start, stop), element in zip(reversed(places), reversed(elements), strict=True):
        text = text[:start] + element.decode(errors="surrogateescape") + text[stop:]
    return text.encode(errors="surrogateescape")
