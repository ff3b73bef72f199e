"""Rows for what HTTP says besides the messages: requests that carry none, refusals, streams, what mcpsniff changed.

An HTTP exchange whose answer is a message that has a row of its own needs no other, unless something was found on it.
"""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from mcpsniff.protocol.edits import HEAD, Edit
from mcpsniff.protocol.events import Note
from mcpsniff.protocol.exchange import ABANDONED, CANCELLED, Exchange
from mcpsniff.protocol.http import ABORTED, COMPLETE, LOST, OPEN, RESUMED, STREAMING, UNDECODED, Http, HttpExchange
from mcpsniff.protocol.message import NOTIFICATION, REQUEST, RESPONSE, Message
from mcpsniff.transcript.http_words import (
    ENDS,
    NO_STATUS,
    US,
    bare_title,
    failure,
    is_probe,
    is_usual,
    meaning,
    message_words,
    remark_on,
    stream_end,
    undecoded,
)
from mcpsniff.transcript.lanes import BROKEN, Lanes
from mcpsniff.transcript.lanes import ENDS as LANE_ENDS
from mcpsniff.transcript.oauth_words import oauth_words
from mcpsniff.transcript.own_changes import OwnChanges
from mcpsniff.transcript.row import HTTP, NOTE, Row
from mcpsniff.transcript.servers import Servers
from mcpsniff.wire.frames import Frame
from mcpsniff.wire.http1_parts import TUNNEL, UPGRADED

KNOWN_LIMIT: Final = 10_000
"""HTTP exchanges of which it is remembered which messages they carried."""
LONGEST: Final = 1000
"""Characters of a captured text on a row."""
SHORT: Final = 160
"""Characters of the body of a refusal that stand on its row."""
_SAY_NOTHING: Final = ("not found", "method not allowed")
"""Bodies of refusals that MCP foresees; they say no more than the status."""
KINDS_LIMIT: Final = 100
"""Kinds of events without a message that are told apart on one stream; of each the first has a row."""


@dataclass(slots=True)
class Known:
    """What is known of an HTTP exchange from the rows so far."""

    first: int | None = None
    """The message in its request; of a batch, the batch."""
    t_first: int | None = None
    """When that was whole (microseconds)."""
    methods: tuple[str, ...] = ()
    """Of its requests, as far as they matter: what opens a conversation."""
    opened: int | None = None
    """The row that tells of it."""
    cut_by_us: bool = False
    """True if mcpsniff ended the connection before it was whole."""
    shown: bool = False
    """True if a message of its response has a row."""
    kinds: tuple[str, ...] = ()
    """Of events without a message on it that have had a row."""
    stream: HttpExchange | None = None
    """The exchange itself, while its stream goes on."""


class HttpRows:
    """Makes rows of HTTP exchanges and of events without a message, and adds to the rows of messages."""

    def __init__(self, lanes: Lanes) -> None:
        self._lanes = lanes
        self._known: OrderedDict[int, Known] = OrderedDict()
        self._refused: OrderedDict[tuple[str, str], int] = OrderedDict()
        """Where an attempt to open a conversation was refused last: the row that says so."""
        self._latest: tuple[Row, HttpExchange] | None = None
        self._conversation: int | None = None
        self._are_several = False
        self._placed: OrderedDict[tuple[int, str], None] = OrderedDict()
        """Conversations of which a row has named the server."""
        self._servers = Servers()
        self._changes = OwnChanges()

    def begin(self) -> None:
        """A record begins: what comes now does not belong to the rows before."""
        self._latest = None

    # -- messages --------------------------------------------------------------------------------------------------

    def message(self, row: Row, message: Message) -> None:
        """Add to the row of a message what HTTP says of it."""
        http = message.http
        if http is None:
            return
        row.conversation = self.marked(message.conversation)
        row.server = self.server(message.conversation, http.authority)
        known = self._of(http.number)
        if message.direction == "c2s":
            if known.first is None:
                known.first, known.t_first = message.n, message.t
            if message.kind == REQUEST and message.method in ("initialize", "server/discover"):
                known.methods += (message.method,)
        else:
            known.shown = True
            row.words += (*self._stream_words(message, http), *message_words(message))
            row.event_id = None if message.frame.sse is None else message.frame.sse.id or None
        if message.kind == RESPONSE and http.opens and http.session_given is not None:
            row.remark = f"session {http.session_given}"

    def is_known_head(self, edit: Edit) -> bool:
        """True if it changes headers that were told of already."""
        return edit.change == HEAD and not edit.is_quiet and not self._changes.is_new_head(edit)

    def edit(self, row: Row, edit: Edit) -> None:
        """Add to the row of an edit what HTTP says of it."""
        http = edit.http
        if http is None:
            row.conversation = None
            return
        row.conversation = self.marked(edit.conversation)
        row.server = self.server(edit.conversation, http.authority)
        known = self._of(http.number)
        if edit.change == HEAD:
            row.words = ("changed", *self._for(known), "others like it are counted")
        if edit.direction == "s2c" and edit.message is not None and edit.of is None and edit.message.method is not None:
            row.words += self._stream_words(edit.message, http)
        known.shown = known.shown or (edit.direction == "s2c" and bool(edit.left))
        if http.made_by is not None and edit.direction == "c2s" and known.first is None:
            known.first, known.t_first = edit.n, edit.t

    def _stream_words(self, message: Message, http: HttpExchange) -> tuple[str, ...]:
        """On which stream a message came, unless that is the only one there is."""
        stream = http.stream
        if stream is None or http.endpoint is not None:
            return ()
        link = message.link
        is_own = link is not None and link.direction == "c2s" and link.http == stream.origin
        if http.stream_kind == RESUMED:
            return ("resumed stream",) if is_own else (f"resumed stream{self._reference(' of ', stream.origin)}",)
        if http.method == "POST" and is_own:
            return () if message.kind == NOTIFICATION else ("POST stream",)  # where else would progress come
        if http.method == "POST":
            return (f"stream{self._reference(' of ', http.number)}",)
        opened = self._of(http.number).opened
        return (f"GET stream #{opened}" if opened is not None else "GET stream",)

    def _reference(self, words: str, number: int) -> str:
        """``words`` and the row that stands for an HTTP exchange; empty if there is none."""
        known = self._known.get(number)
        row = None if known is None else known.opened if known.first is None else known.first
        return "" if row is None else f"{words}#{row}"

    # -- HTTP exchanges --------------------------------------------------------------------------------------------

    def is_quiet(self, event: Http) -> bool:
        """True if the rows of messages say all that there is to say of it."""
        http = event.exchange
        known = self._of(http.number)
        if event.state == UNDECODED:
            return event.why in (UPGRADED, TUNNEL)  # the response that led to it says so
        # An edit has told what was said in the server's place, but not that it was a refusal.
        is_told = http.by != US and known.shown and event.state == COMPLETE and not http.is_refused
        if (http.by is not None and not is_told) or event.state == LOST or (http.auth is not None and event.is_first):
            return False
        if event.state == OPEN:
            return known.first is not None and http.requests > 0
        if http.stream is not None:
            return http.method == "POST" and (event.state == STREAMING or http.fact("ended-unanswered") is None)
        return event.state == COMPLETE and known.shown

    def row(self, event: Http) -> Row:
        """The row of an HTTP exchange whose stream begins, or that is over."""
        http = event.exchange
        if event.ended_by == US and event.state == ABORTED:
            self._of(http.origin).cut_by_us = True
        row = Row(event.n, event.t, HTTP, http=http.origin)
        row.conversation = self.marked(event.conversation)
        row.server = self.server(event.conversation, http.authority)
        if event.state == UNDECODED:
            row.status, row.words, row.loud = NO_STATUS, (undecoded(event),), True
        elif http.stream is not None and event.state != STREAMING:
            self._stream_over(row, event)
        else:
            self._response(row, event)
        known = self._of(http.number)
        known.stream = http if event.state == STREAMING else None
        if known.opened is None:
            known.opened = event.n
        row.lanes = self._lanes.touch(self._of(http.origin).first if known.first is None else known.first)
        if row.status != ENDS:
            row.connection = http.connection
        self._latest = (row, http)
        return row

    def _response(self, row: Row, event: Http) -> None:
        http = event.exchange
        known = self._of(http.number)
        row.title, row.target = http.method, http.target or None
        row.status = NO_STATUS if http.status is None else str(http.status)
        row.odd = not is_usual(http, known.methods)
        row.loud = http.by is not None or http.status is None or http.status >= 500
        step = () if http.auth is None else oauth_words(http.auth)
        row.words = (*self._for(known), *self._beginning(event), *step, *meaning(http, known.methods), *failure(event))
        row.remark = remark_on(http)
        if http.by is not None:
            pending = self._changes.take_answer()
            row.remark = "" if pending is None else pending[1][1]
        else:
            self._say_why(row, event)
        if event.state == STREAMING and http.last_event_id is not None:
            row.event_id, row.is_after = http.last_event_id, True
        row.latency_us = max(event.t - self._whole_since(http) - http.held_us, 0)
        if is_probe(http, known.methods):
            self._refused[http.authority, http.path] = event.n
            if len(self._refused) > KNOWN_LIMIT:
                self._refused.popitem(last=False)

    def _whole_since(self, http: HttpExchange) -> int:
        """When the request was whole, as far as is known: the message in it, else its head (microseconds)."""
        known = self._of(http.number)
        if known.t_first is not None:
            return known.t_first
        return http.t_request if http.request is None else http.request.t_last

    def _say_why(self, row: Row, event: Http) -> None:
        """Add what the body of a refusal says: on the row if it is a short line, else for below it."""
        text, response = event.answered.text, event.exchange.response
        reason = "" if response is None else response.reason
        if not text or (not row.odd and text.casefold() in (reason.casefold(), *_SAY_NOTHING)):
            return
        if row.remark or len(text) > SHORT or "\n" in text or "\r" in text:
            row.body = event.answered
        else:
            row.remark = text

    def _beginning(self, event: Http) -> list[str]:
        """What to say when a stream begins."""
        http = event.exchange
        if event.state != STREAMING:
            return []
        if http.resumed and http.stream is not None:
            return [f"resumes{self._reference(' ', http.stream.origin) or ' an earlier stream'}"]
        words = ["event stream"]
        probe = self._refused.pop((http.authority, http.path), None)
        if probe is not None:
            words.append(f"after the probe #{probe}")
        return words

    def _stream_over(self, row: Row, event: Http) -> None:
        http = event.exchange
        known = self._of(http.number)
        row.status = ENDS
        if http.method == "POST" and known.first is not None:
            row.title, row.is_worded = f"stream of #{known.first}", True
        elif known.opened is not None:
            row.title, row.is_worded = f"stream #{known.opened}", True
        else:
            row.title, row.target = http.method, http.target or None
        row.words = stream_end(event)
        row.latency_us = max(event.t - (http.t_response or event.t), 0)

    def _for(self, known: Known) -> tuple[str, ...]:
        """Which message it carried."""
        return () if known.first is None else (f"for #{known.first}",)

    def ends(self, exchange: Exchange) -> bool:
        """True if the row before says that a request came to nothing: refused, or cancelled by hanging up."""
        if self._latest is None or exchange.cancel is not None:
            return False
        row, http = self._latest
        if http.origin != exchange.http:
            return False
        if exchange.state == CANCELLED:
            says, mark = "cancels", LANE_ENDS
        elif exchange.is_refused:
            says, mark = "refuses", BROKEN
        else:
            return False
        first = self._of(http.origin).first
        row.ended.append(exchange)
        row.lanes = self._lanes.end(exchange.request, mark)
        if len(row.ended) == 1:
            row.words = (f"{says} #{exchange.request if first is None else first}", *row.words[1:])
        return True

    def is_cut_by_us(self, exchange: Exchange) -> bool:
        """True if nothing can answer a request any more because mcpsniff ended its connection."""
        known = None if exchange.http is None else self._known.get(exchange.http)
        return known is not None and known.cut_by_us and exchange.state == ABANDONED

    # -- the rest --------------------------------------------------------------------------------------------------

    def bare(self, frame: Frame) -> Row | None:
        """The row of an event that carries no message; None if it need not be told."""
        event = frame.sse
        if frame.http is None or event is None:
            return None
        row = self.bare_row(frame)
        known = self._of(frame.http)
        if not event.dispatched or not frame.payload:
            return None
        if event.event != "endpoint":
            if event.event[:LONGEST] in known.kinds or len(known.kinds) >= KINDS_LIMIT:
                return None
            known.kinds += (event.event[:LONGEST],)
            row.words = ("others like it are counted",)
        return row

    def bare_row(self, frame: Frame) -> Row:
        """The row of such an event in any case."""
        event = frame.sse
        row = Row(frame.n, frame.t_last, HTTP, title=bare_title(frame), lanes=self._lanes.touch(None), is_worded=True)
        if frame.payload:
            row.target = frame.payload[:LONGEST].decode(errors="replace")
            if event is not None and event.event not in ("endpoint", "message"):
                row.target = f"{event.event[:LONGEST]} {row.target}"
        elif event is not None and event.comments:
            row.target = " ".join(event.comments)[:LONGEST] or None
        row.event_id = None if event is None else event.id or None
        known = None if frame.http is None else self._known.get(frame.http)
        if known is not None and known.stream is not None:
            row.conversation = self.marked(known.stream.conversation)
            row.server = self.server(known.stream.conversation, known.stream.authority)
        return row

    def note(self, note: Note) -> Row | None:
        """The row of a remark of the recorder; None for what is told elsewhere, or was told before."""
        words = self._changes.words(note)
        return None if words is None else self._note_row(note, words)

    def unsaid(self) -> Row | None:
        """An answer of mcpsniff's own to something that was no request, after all events of its record."""
        pending = self._changes.take_answer()
        return None if pending is None else self._note_row(*pending)

    def _note_row(self, note: Note, words: tuple[str, str]) -> Row:
        title, remark = words
        return Row(note.n, note.t, NOTE, title=title, remark=remark, lanes=self._lanes.touch(None))

    def marked(self, conversation: int | None) -> int | None:
        """The number of a conversation, once there is more than one."""
        if not conversation:
            return None
        if self._conversation is None:
            self._conversation = conversation
        self._are_several = self._are_several or conversation != self._conversation
        return conversation if self._are_several else None

    def server(self, conversation: int | None, authority: str) -> str:
        """The server, once there is more than one; of a conversation on its first row since there are several."""
        self._servers.add(authority, is_mcp=bool(conversation))
        are_several = self._servers.are_several if conversation else self._servers.are_several_asked
        if not are_several or (conversation and (conversation, authority) in self._placed):
            return ""
        if conversation:
            self._placed[conversation, authority] = None
            if len(self._placed) > KNOWN_LIMIT:
                self._placed.popitem(last=False)
        return authority

    def _of(self, number: int) -> Known:
        known = self._known.get(number)
        if known is None:
            known = self._known[number] = Known()
            if len(self._known) > KNOWN_LIMIT:
                self._known.popitem(last=False)
        else:
            self._known.move_to_end(number)
        return known
