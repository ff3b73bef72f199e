"""A row of a transcript, for every form of it."""

from dataclasses import dataclass, field
from typing import Final

from mcpsniff.checks import Finding
from mcpsniff.protocol.exchange import Exchange
from mcpsniff.protocol.http import Body
from mcpsniff.protocol.message import Message

BLANK: Final = "blank"
STDERR: Final = "stderr"
CLOSE: Final = "close"
UNANSWERED: Final = "unanswered"
NOTE: Final = "note"
REPORT: Final = "report"
HTTP: Final = "http"
EDIT: Final = "edit"


@dataclass(slots=True)
class Row:
    """One row. ``n`` is the number of its event, the same as in the JSON output."""

    n: int
    t: int
    kind: str
    direction: str | None = None
    title: str = ""
    """The method, or what stands in its place."""
    target: str | None = None
    """What the message is about, such as the tool's name."""
    words: tuple[str, ...] = ()
    """What mcpsniff says of it, such as ``answers #8``; only words of its own."""
    remark: str = ""
    """The few words of the peer that matter most, such as an error's message."""
    id: str | None = None
    size: int | None = None
    latency_us: int | None = None
    """From when the request was whole until its answer was; of an event stream, until its head was."""
    lanes: str = ""
    loud: bool = False
    """True for what nobody should overlook: noise, a failure, an end with a status other than 0."""
    frame: int | None = None
    """The number of the frame whose findings hang on this row too."""
    message: Message | None = None
    envelope: int | None = None
    """The message that shows the envelope of this one, where that is the same (`mcpsniff.transcript.envelopes`)."""
    findings: list[Finding] = field(default_factory=list)
    conversation: int | None = None
    """Over HTTP: the number of the conversation, where there is more than one."""
    server: str = ""
    """Over HTTP: the origin of the server, where there is more than one; captured text."""
    event_id: str | None = None
    """Over HTTP: the id of the event that carried it."""
    is_after: bool = False
    """True if ``event_id`` is the one after which a stream is to go on."""
    is_worded: bool = False
    """Of an HTTP exchange: True if the title is of our own words, not the method."""
    status: str = ""
    """Of an HTTP exchange: the response's status, or what stands in its place."""
    http: int | None = None
    """Of an HTTP exchange: its number, or that of the one whose stream it goes on with."""
    connection: int | None = None
    """Of an HTTP exchange: the number of its connection."""
    body: Body | None = None
    """Of a refusal: its body, where that says more than has room on the row."""
    odd: bool = False
    """True for an HTTP exchange at which one may want to look twice."""
    exchange: int | None = None
    """Of an edit: the request of the exchange that it has to do with."""
    ended: list[Exchange] = field(default_factory=list)
    """The requests that came to nothing with this HTTP exchange, and have no row for that."""
