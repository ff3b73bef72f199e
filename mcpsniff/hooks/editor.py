"""The editor: gives each message that is held to the edit hooks, one after another, and says what leaves in its place.

It knows no transport. A shell (`mcpsniff.proxy.relay`) cuts frames, holds one at a time in the thread of its direction,
calls `Editor.edit`, and writes what that returns. Nothing returned (None) means that nobody wants anything else: the
bytes go on as they came.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from threading import Lock
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Protocol

from mcpsniff.hooks import together
from mcpsniff.hooks.actions import Action, Back, Drop, HttpHead, Later, Returned, Text, is_made
from mcpsniff.hooks.faults import described
from mcpsniff.hooks.later import Keeper
from mcpsniff.hooks.passing import KEPT, Item, Passage, named
from mcpsniff.hooks.talk import Talk, is_own_id
from mcpsniff.protocol.exchange import OTHER
from mcpsniff.protocol.jsonrpc import BATCH_CUT, classify
from mcpsniff.protocol.message import BATCH, INVALID, REQUEST, Message
from mcpsniff.protocol.outline import outline
from mcpsniff.protocol.patch import patched, text_of
from mcpsniff.protocol.reading import JsonReader
from mcpsniff.wire.frames import EMPTY_LINE, Frame

TALKS_LIMIT: Final = 10_000
"""Conversations that are remembered."""
LATEST: Final = 1e6
"""Seconds after which what is to leave later leaves in any case."""

SAME: Final = "same"
"""The frame as it came."""
CHANGED: Final = "changed"
"""Something in the frame's place."""
ADDED: Final = "added"
"""Something besides, before or after it."""
BACK: Final = "back"
"""Something for the side that the frame came from."""
ANSWER_KEPT: Final = KEPT


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
        """Who it is, in records and transcripts.

        One with a true attribute ``tells`` returns a message that it has changed in place in a `Told`: if it returns
        the bare message nobody has to look whether that still says the same.
        """

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


class Editor:
    """Gives messages to ``interceptors`` in their order. May be used by many threads at once, a `JsonReader` each."""

    def __init__(self, interceptors: Sequence[Interceptor], say: Callable[[str], object]) -> None:
        """``say`` is given a sentence about what went wrong."""
        self.interceptors = interceptors
        self._say = say
        self._told: set[str] = set()
        self._talks: OrderedDict[Any, Talk] = OrderedDict()
        self._numbers = 0
        self._lock = Lock()
        self._keeper = Keeper()

    @property
    def interceptors(self) -> Sequence[Interceptor]:
        """Those that messages are given to, in order."""
        return self._interceptors

    @interceptors.setter
    def interceptors(self, interceptors: Sequence[Interceptor]) -> None:
        self._interceptors = list(interceptors)
        self._is_told = all(getattr(one, "tells", False) for one in interceptors)
        self._passage = Passage(self._interceptors, self.tell_once)

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
        found = classify(frame, reader)
        whole, keeper = found[0], self._keeper
        earlier = keeper.of(lane) if keeper.is_used else ()
        edit = self._batch(whole, found[1:], talk, lane) if whole.kind == BATCH else self._one(whole, talk, lane)
        if not keeper.is_used or (edit is not None and not edit.passes):
            return edit
        kept = self._keeper.passed((talk.number, frame.direction), earlier)
        if not kept:
            return edit
        leaving = [Outgoing(SAME, self.holder, "", whole.raw, whole)] if edit is None else edit.leaving
        return Edit(kept[0].by, kept[0].why, leaving + kept) if edit is None else edit._replace(leaving=leaving + kept)

    def flush(self, lane: Lane) -> list[Outgoing]:
        """A stream is about to end: what is still to leave on it (ADDED). May wait for what is to overtake it."""
        return self._keeper.flush(lane)

    @property
    def holder(self) -> str:
        """Who takes the time of messages that leave as they came, if nobody in particular has held them."""
        return self._passage.holder

    def edit_head(self, head: HttpHead) -> str:
        """Let interceptors change a head of HTTP; return who has."""
        by = ""
        for interceptor in self.interceptors:
            headers, status = list(head.headers), head.status
            interceptor.edit_head(head)
            if head.headers != headers or head.status != status:
                by = together.names((by, interceptor.name))
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

    def _one(self, message: Message, talk: Talk, lane: Lane, *, is_alone: bool = True) -> Edit | None:
        by = talk.made_by(message)
        if by is not None:
            return Edit(by, ANSWER_KEPT, [])
        talk.place(message, message.frame.t_last)
        run, slowest = self._passage.run(message, lane, is_alone=is_alone)
        if run is None and (self._is_told or self._text(message, "") is message.raw):
            by = slowest
            return None if by is None else Edit(by, "", [Outgoing(SAME, by, "", message.raw, message)])
        items = [self._kept_back(item, message, talk, lane) for item in run or (Item(message),)]
        if len(items) == 1 and items[0].what is message:
            item = items[0]
            item.text = self._text(message, item.by)
            if item.text is message.raw and not item.headers and not item.why:
                if slowest is None:
                    return None
                item.by = slowest
        return self._edit(message, items, talk)

    def _kept_back(self, item: Item, arrived: Message, talk: Talk, lane: Lane) -> Item:
        """Wait with what is to leave later if it has a body for itself, else keep it and drop it here."""
        later, way = item.what, (talk.number, arrived.direction)
        if not isinstance(later, Later):
            return item
        seconds = min(later.seconds, LATEST)
        if arrived.frame.framing == "body":
            self._keeper.wait(way, lane, seconds, item.by, item.why)
            return Item(later.message, item.by, item.why, item.headers)
        out = self._outgoing(item, arrived, talk, takes_its_place=False)
        self._keeper.keep(out._replace(what=ADDED, action=None), way, lane, seconds)
        return Item(Drop(), item.by, item.why)

    def _edit(self, arrived: Message, items: list[Item], talk: Talk) -> Edit:
        """Give each item its role and its text."""
        dropped = next((item for item in items if isinstance(item.what, Drop)), None)
        items = [item for item in items if not isinstance(item.what, Drop)]
        first = dropped or next((item for item in items if item.by), Item(arrived))
        is_here = any(_message(item.what) is arrived for item in items if not isinstance(item.what, Back))
        leaving: list[Outgoing] = []
        has_gone = False
        for item in items:
            item.by = item.by or first.by
            try:
                out = self._outgoing(item, arrived, talk, takes_its_place=not is_here)
            except Exception as error:  # noqa: BLE001 - a bug of ours, or no memory: no edit is undone by it
                what = f"a message that {item.by or self._editors()} lets go on is lost"
                self.tell_once(f"internal error: {what} ({described(error)})")
                continue
            is_here = is_here or out.what == CHANGED
            if out.what in (SAME, CHANGED):
                out = out._replace(what=ADDED) if has_gone else out  # once more
                has_gone = True
            leaving.append(out)
        return Edit(first.by or self._editors(), first.why, leaving)

    def _outgoing(self, item: Item, arrived: Message, talk: Talk, *, takes_its_place: bool) -> Outgoing:
        message = _message(item.what)
        action = None if isinstance(item.what, Message | Back | Text) else item.what
        is_back = isinstance(item.what, Back)
        direction = OTHER[arrived.direction] if is_back else arrived.direction
        if message is not None and is_made(message):
            talk.fit(message, direction, arrived)
        if message is not None and message.kind == REQUEST and is_made(message) and is_own_id(message.key):
            named(message, talk.adopt(str(message.key), direction, item.by))
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
            if message.body is None and message.kind not in (BATCH, INVALID):
                return b"null"
            return patched(message.raw, message.body) if message.raw else text_of(message.body)
        except Exception as error:  # noqa: BLE001 - what somebody has put there need not even have a text
            text = f"a message cannot be written as JSON ({described(error)}); it passes as it was"
            self.tell_once(f"{by or self._editors()}: {text}")
            return message.raw or b"null"

    def _editors(self) -> str:
        return self.interceptors[-1].name if len(self.interceptors) == 1 else "addons"

    # -- batches ---------------------------------------------------------------------------------------------------

    def _batch(self, whole: Message, elements: list[Message], talk: Talk, lane: Lane) -> Edit | None:
        """Each element goes its own way; what goes on is put together again."""
        on: list[bytes] = []
        beside: list[Outgoing] = []
        edits: list[Edit] = []
        for element in elements:
            edit = self._one(element, talk, lane, is_alone=False)
            if edit is None:
                on.append(element.raw)
                continue
            edits.append(edit)
            for out in edit.leaving:
                if out.what == BACK or out.action is not None:
                    beside.append(out._replace(what=BACK if out.what == BACK else ADDED))
                else:
                    on.append(out.data)
        if not edits:
            return None
        meant = [edit for edit in edits if edit.why or [out.what for out in edit.leaving] != [SAME]] or edits
        by = together.names(edit.by for edit in meant)
        why = together.reasons(edit.why for edit in meant)
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
