"""Edits: what `rewrite` and `hold` records say of the messages that have come, and of those that have not.

A record is given its messages (what came in that place, what left) and becomes an `Edit`. What it does to exchanges is
done here: a request that was dropped is owed no answer, an answer of somebody else's ends the exchange, a request of
somebody else's is one.
"""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Final

from mcpsniff.capture.records import BRIEF_US, HOLD, REWRITE
from mcpsniff.decoder.channel import Channel, number_of, text_of
from mcpsniff.decoder.edited_heads import changed_headers, is_routine
from mcpsniff.decoder.emitter import Emitter, Event
from mcpsniff.decoder.left import EITHER, LINE, Left, read_left, starts_http
from mcpsniff.decoder.twins import is_answer, part_of, twins
from mcpsniff.decoder.window import Entry, Window, spliced
from mcpsniff.protocol.conversation import Conversation
from mcpsniff.protocol.edits import ADDED, ANSWERED_BY, BYTES, CHANGED, DROPPED, HEAD, HELD, Edit, Touch
from mcpsniff.protocol.exchange import ANSWER, ASKED, CANCEL, GARBLED, OPEN, OTHER, PROGRESS, Exchange, token_key
from mcpsniff.protocol.exchanges import Exchanges
from mcpsniff.protocol.http import HttpExchange
from mcpsniff.protocol.jsonrpc import classify
from mcpsniff.protocol.members import changed_members
from mcpsniff.protocol.message import BATCH, ERROR, INVALID, NOTIFICATION, REQUEST, RESPONSE, Message
from mcpsniff.protocol.reading import JsonReader
from mcpsniff.protocol.talk import Talk
from mcpsniff.wire.frames import Frame, Span

CUTS_LIMIT: Final = 1_000
"""Connections of which it is remembered that something was cut off on them."""
CARRIED_LIMIT: Final = 300
"""HTTP exchanges of which it is remembered what they ask."""
US: Final = "mcpsniff"
"""Who does what has nothing to do with messages: `Host`, an endpoint, answers in the place of no server at all."""

type AnyTalk = Talk[Any]


class Editing:
    """What becomes of messages on their way."""

    def __init__(self, emitter: Emitter) -> None:
        self._emitter = emitter
        self._window = Window()
        self._reader = JsonReader()
        self._torn: dict[int, Touch] = {}
        """Channels on which a piece of a line has left, so that the next line is not understood."""
        self._cuts: OrderedDict[int, None] = OrderedDict()
        self._carried: OrderedDict[int, Exchange] = OrderedDict()
        """What the latest HTTP exchanges ask, the first of each."""
        self._asking: Edit | None = None
        """A request of HTTP that somebody made, while it is told of."""

    # -- what comes ------------------------------------------------------------------------------------------------

    def came(self, frame: Frame, messages: Sequence[Message], talk: AnyTalk, http: HttpExchange | None = None) -> None:
        """A frame has come, and its messages were placed."""
        self._window.frame(frame, messages, talk, http)
        if http is not None and frame.direction == "c2s" and messages:
            self._carry(http, messages)
        if not self._window.is_wide:
            return
        if frame.direction == "c2s":
            talk.conversation.is_kept_back = False
        entry = self._window.latest(frame.channel) if frame.channel in self._torn else None
        if entry is not None and entry.frame is frame:
            self._garble(entry, self._torn.pop(frame.channel))

    def head_came(self, http: HttpExchange, *, of_request: bool) -> None:
        """The head of a request, or of a response, has come."""
        head = http.request if of_request else http.response
        if head is not None:
            self._window.head(head, http)

    # -- what left -------------------------------------------------------------------------------------------------

    @staticmethod
    def is_edit(kind: str, fields: dict[str, Any], channel: Channel | None) -> bool:
        """True if a record tells of an edit; the others tell of what mcpsniff itself does to HTTP."""
        if channel is None or channel.kind == "stderr" or kind not in (REWRITE, HOLD):
            return False
        return kind == HOLD or text_of(fields.get("by")) != US

    def note(  # noqa: PLR0917
        self,
        out: list[Event],
        edit: Edit,
        channel: Channel,
        talk: AnyTalk | None,
        outside: Conversation,
        t: int,
    ) -> None:
        """Read an edit, do to exchanges what it does to them, and tell of it.

        ``talk`` is that of the pipes; over HTTP it is found. ``outside`` stands for no conversation.
        """
        self._window.widen()
        edit.direction = channel.direction
        start = number_of(edit.fields.get("start")) or 0
        length = number_of(edit.fields.get("length")) or 0
        entries = self._window.over(channel.number, start, start + length) if length > 0 else []
        beside = None if entries else self._window.beside(channel.number, start)
        if not entries and (head := self._window.head_around(channel.number, start)) is not None:
            entries = [head]
        http = next((entry.http for entry in entries if entry.http is not None), None)
        data = edit.fields.get("data")
        is_whole = isinstance(data, bytes) and starts_http(data)  # a response of its own, to the next request
        if http is None and talk is None:
            http = beside.http if beside is not None and not is_whole else channel.current()
        edit.http = http
        talk = next((entry.talk for entry in entries if entry.talk is not None), talk)
        talk = talk or (None if http is None else http.talk) or (None if beside is None else beside.talk)
        ended: list[Exchange] = []
        if edit.kind == HOLD:
            self._hold(edit, entries, t)
        else:
            ended = self._rewrite(edit, entries, channel, talk, start + length, t)
        conversation = outside if talk is None else talk.conversation
        edit.conversation = conversation.number
        self._emitter.tell(out, edit, conversation, t)
        for exchange in ended:
            self._emitter.tell(out, exchange, conversation, t)

    def asked(self, http: HttpExchange, talk: AnyTalk) -> list[Exchange]:
        """The request of HTTP that was told of last, and that somebody made, belongs to ``talk``."""
        edit, self._asking = self._asking, None
        if edit is None:
            return []
        edit.http, edit.conversation = http, talk.conversation.number
        if http.opens:
            talk.conversation.join_late()  # a handshake that no client began
        for message in edit.left:
            message.http, message.conversation = http, talk.conversation.number
            message.revision = talk.conversation.govern(message)
        return self._add(edit, edit.left, talk)

    # -- one record ------------------------------------------------------------------------------------------------

    def _hold(self, edit: Edit, entries: list[Entry], t: int) -> None:
        edit.change = HELD
        edit.is_quiet = 0 < edit.held_us < BRIEF_US and not edit.why
        for entry in entries:
            edit.of = edit.of or next(iter(entry.messages), None)
            if entry.http is not None and entry.frame is not None and edit.direction == "c2s":
                entry.http.held_us += edit.held_us
            for message in entry.messages:
                if entry.talk is not None and message.link is not None:
                    self._held(edit, message, message.link, entry.talk.exchanges, t)

    def _held(self, edit: Edit, message: Message, link: Exchange, exchanges: Exchanges, t: int) -> None:
        edit.link = edit.link or link
        is_request = part_of(message, link) == ASKED
        if is_request and edit.held_us == 0:  # it begins
            exchanges.pause(link)
            return
        self._touch(edit, link, part_of(message, link), HELD)
        if edit.held_us and link.gave_up is None:
            self._find(edit, link)
        elif is_answer(message, link):
            self._lose(edit, link, HELD)
        if is_request:
            link.held_us += edit.held_us
            exchanges.go_on(link, t)

    def _rewrite(  # noqa: PLR0917
        self, edit: Edit, entries: list[Entry], channel: Channel, talk: AnyTalk | None, stop: int, t: int
    ) -> list[Exchange]:
        data = edit.fields.get("data")
        data = data if isinstance(data, bytes) else b""
        first = next((entry for entry in entries if entry.frame is not None), None)
        frame = None if first is None else first.frame
        whole = data if first is None else spliced(first, data, edit.spans[0])
        is_of_head = first is None and bool(entries) and not starts_http(data)
        left = Left(()) if is_of_head else self._read(edit, whole, channel, frame, t)
        edit.left = self._messages(left, talk, t)
        spoken = [entry for entry in entries if entry.messages]
        edit.of = next((entry.messages[0] for entry in spoken), None)
        if edit.direction == "c2s":
            for entry in spoken:
                if entry.http is not None:
                    entry.http.held_us += edit.held_us
        edit.change = _change(edit, spoken, entries, data)
        if talk is not None and edit.direction == "c2s" and edit.change in (DROPPED, ADDED):
            talk.conversation.is_kept_back = edit.change == DROPPED
        if edit.change == ADDED and edit.direction == "c2s" and left.head is not None and channel.kind == "tcp":
            self._asking = edit
            return []
        if edit.change in (HEAD, BYTES) or talk is None:
            if edit.change == HEAD:
                edit.members = changed_headers([entry.head for entry in entries], left.head, data, edit.spans[0])
                edit.link = None if edit.http is None else self._carried.get(edit.http.number)
            edit.is_quiet = edit.change == BYTES or (edit.change == HEAD and is_routine(edit.members, data))
            return []
        if channel.kind in ("stdin", "stdout") and data and whole is data and not data.endswith(b"\n"):
            self._tear(edit, channel.number, stop)
        ended = self._replace(edit, spoken, talk, t)
        if left.head is not None and edit.direction == "s2c":
            for exchange in ended:
                exchange.status = left.head.status
        return ended

    def _read(self, edit: Edit, data: bytes, channel: Channel, frame: Frame | None, t: int) -> Left:
        framing = LINE if channel.kind in ("stdin", "stdout") else EITHER if frame is None else frame.framing
        method = "POST" if edit.http is None else edit.http.method
        coding = None if frame is None else frame.coding
        return read_left(data, framing, channel.number, edit.direction, t, coding, method)

    def _messages(self, left: Left, talk: AnyTalk | None, t: int) -> tuple[Message, ...]:
        """The messages among what left, as parts of the edit that comes next."""
        found = [message for frame in left.frames for message in classify(frame, self._reader)]
        n = self._emitter.n + 1
        for message in found:
            message.n = message.frame.n = n
            message.t = t
            message.batch = n if message.batch is not None else None
            if talk is not None:
                message.conversation = talk.conversation.number
                message.revision = talk.conversation.govern(message)
        return tuple(found)

    def _replace(self, edit: Edit, spoken: list[Entry], talk: AnyTalk, t: int) -> list[Exchange]:
        """Do to exchanges what it means that ``edit.left`` stands where ``spoken`` was."""
        exchanges = talk.exchanges
        arrived = [message for entry in spoken for message in entry.messages if message.kind != BATCH]
        pairs, rest = twins(arrived, [message for message in edit.left if message.kind != BATCH])
        members: dict[str, None] = {}
        for message, twin in pairs:
            if twin is not None and twin.raw == message.raw:
                twin.link = message.link
                continue
            if twin is not None:
                members.update(dict.fromkeys(changed_members(message.body, twin.body)))
                twin.link = message.link
            is_garbled = twin is None and bool(edit.left) and len(arrived) == 1
            if is_garbled:
                exchanges.disturb(edit.direction)
                if edit.http is not None:
                    edit.http.tell("garbled", text=edit.by)
                    self._cut(edit.http.connection)
            if message.link is not None:
                change = CHANGED if twin is not None else GARBLED if is_garbled else DROPPED
                self._alter(edit, message, twin, message.link, exchanges, change, t)
        edit.members = tuple(members)
        return self._add(edit, rest, talk)

    def _alter(  # noqa: PLR0917
        self,
        edit: Edit,
        message: Message,
        twin: Message | None,
        link: Exchange,
        exchanges: Exchanges,
        change: str,
        t: int,
    ) -> None:
        """A message of an exchange did not go on as it came."""
        edit.link = edit.link or link
        part = part_of(message, link)
        self._touch(edit, link, part, change)
        if is_answer(message, link) and (twin is None or str(twin.key) not in (str(message.key), str(link.key))):
            self._lose(edit, link, change)
        if part != ASKED:
            return
        link.held_us += edit.held_us
        if twin is None:
            exchanges.keep_back(link)
            return
        exchanges.rename(link, twin)
        exchanges.go_on(link, t)

    def _add(self, edit: Edit, added: Sequence[Message], talk: AnyTalk) -> list[Exchange]:
        """Messages left that stand for nothing that arrived in that place."""
        ended: list[Exchange] = []
        for message in added:
            if message.kind == REQUEST:
                ended += self._ask(edit, message, talk.exchanges)
            elif message.kind in (RESPONSE, ERROR):
                ended += self._answer(edit, message, talk.exchanges)
            elif message.kind == NOTIFICATION:
                self._notify(edit, message, talk.exchanges)
            elif message.kind == INVALID:
                talk.exchanges.disturb(edit.direction)
            edit.link = edit.link or message.link
        return ended

    def _ask(self, edit: Edit, message: Message, exchanges: Exchanges) -> list[Exchange]:
        known = None if message.key is None else exchanges.find(edit.direction, message.key)
        if known is not None and known.state == OPEN and known.is_kept_back:
            message.link = known  # it was dropped before to be sent now
            self._touch(edit, known, ASKED, ADDED)
            known.held_us = max(message.t - known.t_request, 0)
            exchanges.go_on(known, message.t)
            return []
        if known is not None:
            self._touch(edit, known, ASKED, ADDED)
        return exchanges.ask_for(message, edit.by)

    def _answer(self, edit: Edit, message: Message, exchanges: Exchanges) -> list[Exchange]:
        ended = exchanges.answer_for(message, edit.by)
        if ended and edit.change == ADDED:
            edit.change = ANSWERED_BY
        if message.link is not None:
            self._touch(edit, message.link, ANSWER, ANSWERED_BY if ended else ADDED)
            self._find(edit, message.link)
        return ended

    def _notify(self, edit: Edit, message: Message, exchanges: Exchanges) -> None:
        params = message.params
        if message.method == "notifications/progress":
            token = token_key(params.get("progressToken"))
            message.link = None if token is None else exchanges.holder(OTHER[edit.direction], token)
        elif message.method == "notifications/cancelled":
            key = token_key(params.get("requestId"))
            message.link = None if key is None else exchanges.find(edit.direction, key)
        if message.link is not None:
            part = PROGRESS if message.method == "notifications/progress" else CANCEL
            self._touch(edit, message.link, part, ADDED)

    def is_cut(self, connection: int) -> bool:
        """True if something was cut off on a connection: its end is not the server's doing."""
        return connection in self._cuts

    # -- small parts -----------------------------------------------------------------------------------------------

    def _cut(self, connection: int) -> None:
        self._cuts[connection] = None
        if len(self._cuts) > CUTS_LIMIT:
            self._cuts.popitem(last=False)

    def _carry(self, http: HttpExchange, messages: Sequence[Message]) -> None:
        link = next((message.link for message in messages if message.kind == REQUEST and message.link), None)
        if link is not None:
            self._carried[http.number] = link
            if len(self._carried) > CARRIED_LIMIT:
                self._carried.popitem(last=False)

    def _touch(self, edit: Edit, link: Exchange, part: str, change: str) -> None:
        link.touch(Touch(self._emitter.n + 1, part, change, edit.by, edit.why, edit.is_quiet))

    def _lose(self, edit: Edit, link: Exchange, change: str) -> None:
        """The answer does not reach who asked, at least not yet; who asks on the way itself wants it so."""
        if link.by is None and link.undelivered is None:
            link.undelivered = Touch(self._emitter.n + 1, ANSWER, change, edit.by, edit.why)
            edit.lost += (link,)

    def _find(self, edit: Edit, link: Exchange) -> None:
        """The answer goes on after all."""
        if link.undelivered is not None:
            link.undelivered = None
            edit.found += (link,)

    def _tear(self, edit: Edit, channel: int, stop: int) -> None:
        """A line left without its end: the next one is a part of it for whoever reads it."""
        touch = Touch(self._emitter.n + 1, ASKED, GARBLED, edit.by, edit.why)
        following = self._window.next(channel, stop)
        if following is None:
            self._torn[channel] = touch
        else:
            self._garble(following, touch, edit)

    def _garble(self, entry: Entry, touch: Touch, edit: Edit | None = None) -> None:
        for message in entry.messages:
            link = message.link
            if link is None or entry.talk is None:
                continue
            part = part_of(message, link)
            link.touch(touch._replace(part=part))
            if is_answer(message, link) and link.by is None and link.undelivered is None:
                link.undelivered = touch._replace(part=part)
                if edit is not None:
                    edit.lost += (link,)
            if part == ASKED:
                entry.talk.exchanges.keep_back(link)
        if entry.talk is not None and entry.frame is not None:
            entry.talk.exchanges.disturb(entry.frame.direction)


def made(kind: str, channel: int, fields: dict[str, Any], spans: tuple[Span, ...], where: str) -> Edit:
    """The edit that a record tells of, not yet read."""
    return Edit(kind, channel, fields, spans, where)


def _change(edit: Edit, spoken: list[Entry], entries: list[Entry], data: bytes) -> str:
    """What kind of edit it is, as far as what came and what left tell."""
    if spoken:
        return CHANGED if data else DROPPED
    if edit.left or not entries:
        is_bytes = not edit.left and (edit.spans and edit.spans[0].stop > edit.spans[0].start)
        return BYTES if is_bytes and not starts_http(data) else ADDED
    return HEAD if any(entry.head is not None for entry in entries) else CHANGED if data else DROPPED
