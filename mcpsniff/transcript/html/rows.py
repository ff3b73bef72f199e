"""A row of the transcript as a list item, short enough that twenty thousand of them stay a small file.

The tags carry the meaning that the style sheet and the script go by:

    <li id=nN class=cq>             N: the event's number; the class says who sent what kind (`CLASSES`)
      <a href=#nM>answered #M</a>   the tie to its request; the script adds that of a request to its answer
      <details><summary>
        <i>time</i><i>number</i><b>method</b><em>target</em><i>words</i><span>remark</span>
        <i>id 7</i><u>size</u><u>latency</u>
      </summary><pre>payload</pre></details>
      <p class=error>a finding</p>

A row without a payload has a p without a class in place of the details. One of an HTTP exchange has its status, or what
stands in its place, as b, and method and target as em.
"""

from collections.abc import Iterator
from typing import Final

from mcpsniff.checks import Finding
from mcpsniff.protocol.exchanges import STATES
from mcpsniff.protocol.message import INVALID, NOTIFICATION, Message
from mcpsniff.protocol.reading import NOT_JSON
from mcpsniff.transcript.advice import what_to_do
from mcpsniff.transcript.html.markup import content, escaped_lines, json_content, lines_content, link, linked, own_words
from mcpsniff.transcript.http_words import ENDS
from mcpsniff.transcript.payload import WHOLE, Style, body_lines
from mcpsniff.transcript.rows import BLANK, CLOSE, EDIT, HTTP, NOTE, REPORT, STDERR, UNANSWERED, Row
from mcpsniff.transcript.safe import shortened
from mcpsniff.transcript.servers import short
from mcpsniff.transcript.summary import is_refused
from mcpsniff.transcript.text import MARKS, blamed
from mcpsniff.transcript.units import duration, moment, size
from mcpsniff.wire.frames import INCOMPLETE, TRUNCATED

CLASSES: Final = {
    "request": "q",
    "notification": "n",
    "response": "r",
    "error": "e",
    "batch": "b",
    "invalid": "v",
    BLANK: "blank",
    STDERR: "stderr",
    CLOSE: "close",
    UNANSWERED: "unanswered",
    NOTE: "note",
    REPORT: "report",
    HTTP: "http",
    EDIT: "edit",
}
"""By the kind of the row; before the letter of a message stands c (from the client) or s (from the server)."""

LONGEST_TITLE: Final = 200
LONGEST_ID: Final = 80
LONGEST_LINE: Final = 400
"""Characters of a line of stderr up to which it is shown unfolded."""

_NO_TIES: Final = ("stream of", "resumed stream of", "after the probe")
"""Words that name a row to which a row does not belong."""

type Bar = tuple[int, int, int, int, int, int]
"""An exchange for the timeline: the number of its request, when it began and how long it took (microseconds), its
state (its place in STATES, or REFUSED), 1 if the server asked, the number of the event that ended it. Likewise an event
stream, with STREAM for its state."""

STREAM: Final = -1
REFUSED: Final = len(STATES)
"""In place of a state: it was abandoned, as HTTP refused it."""
UNSEEN: Final = REFUSED + 1
"""In place of a state: the capture may lack its answer."""
_PLACES: Final = {**{state: place for place, state in enumerate(STATES)}, "refused": REFUSED, "unseen": UNSEEN}


def row_markup(row: Row, style: Style) -> str:
    """The list item of a row."""
    start = "<li" if row.kind == REPORT else f"<li id=n{row.n}"
    return f"{start} class={_class(row)}>{_tie(row)}{_body(row, style)}{_findings(row)}\n"


def bars(row: Row) -> Iterator[Bar]:
    """The exchanges that end with this row, or the event stream."""
    for exchange in row.ended:
        took = max(exchange.t - exchange.t_request, 0)
        yield (
            exchange.request,
            exchange.t_request,
            took,
            REFUSED if is_refused(exchange) else STATES.index(exchange.state),
            0,
            row.n,
        )
    if row.kind == HTTP and row.status == ENDS and row.latency_us is not None:
        yield row.n, row.t - row.latency_us, row.latency_us, STREAM, 1, row.n
    ended = _bar(row)
    if ended is not None:
        yield ended


def _bar(row: Row) -> Bar | None:
    message = row.message
    if row.kind == UNANSWERED:
        state, _, number = (row.words[0] if row.words else "").partition(" #")
        if state not in _PLACES or not number.isdecimal():
            return None
        waited = row.latency_us or 0
        return int(number), row.t - waited, waited, _PLACES[state], int(row.direction == "s2c"), row.n
    exchange = None if message is None else message.link
    if message is None or exchange is None:
        return None
    if exchange.response != message.n and not (message.kind == NOTIFICATION and exchange.cancel == message.n):
        return None
    took = max(message.t - exchange.t_request, 0)
    by_server = int(exchange.direction == "s2c")
    return exchange.request, exchange.t_request, took, STATES.index(exchange.state), by_server, message.n


def _class(row: Row) -> str:
    letter = CLASSES.get(row.kind, "note")
    name = f"{'c' if row.direction == 'c2s' else 's'}{letter}" if len(letter) == 1 else letter
    if row.loud or "tool error" in row.words:
        return f'"{name} bad"'
    return f'"{name} odd"' if row.odd else name


def _tied(row: Row) -> str | None:
    """The words on the row that name the request, or the batch, that it belongs to."""
    if row.kind == "request":
        return None  # its tie is to the answer, which is not known yet
    words = (*row.words, row.title) if row.kind == HTTP and row.is_worded else row.words
    return next((word for word in words if linked(word) and not word.startswith(_NO_TIES)), None)


def _tie(row: Row) -> str:
    """The link to the request, or to the batch, that the words on the row name."""
    tied = _tied(row)
    return "" if tied is None else linked(tied)


def _body(row: Row, style: Style) -> str:
    if row.kind == STDERR:
        return _stderr(row, style)
    line = _line(row)
    payload = "" if row.message is None or not style.shown else _payload(row.message)
    if row.body is not None:
        lines = (
            "".join(text for _, text in line) for line in body_lines(row.body, WHOLE if style.shown else style, 200)
        )
        payload = escaped_lines(lines)
    if not payload:
        return f"<p>{line}</p>"
    return f"<details{' open' if style.whole else ''}><summary>{line}</summary><pre>{payload}</pre></details>"


def _start(row: Row) -> str:
    return f"<i>{moment(row.t)}</i><i>{'' if row.kind == REPORT else row.n}</i>"


def _line(row: Row) -> str:
    parts = [_start(row)]
    if row.conversation is not None or row.server:
        number = "" if row.conversation is None else f"{row.conversation}"
        place = content(shortened(short(row.server), LONGEST_ID)) if row.server else ""
        parts.append(f"<i>[{' '.join(filter(None, (number, place)))}]</i>")
    if row.kind in (CLOSE, NOTE, BLANK, REPORT):
        parts.append(f"<b>{_title_of_noise(row)}</b>")
    elif row.kind == HTTP and row.status:
        parts.append(f"<b>{row.status}</b>")
        parts.append(f"<em>{content(shortened(row.title, LONGEST_TITLE))}</em>" if row.title else "")
    elif row.title:
        parts.append(f"<b>{content(shortened(row.title, LONGEST_TITLE))}</b>")
    if row.target is not None:
        parts.append(f"<em>{content(shortened(row.target, LONGEST_TITLE))}</em>")
    tied = _tied(row)
    said = own_words if row.kind == HTTP else content  # what unfolds at a click holds no links
    parts.extend(f"<i>{said(word)}</i>" for word in row.words if word != tied)
    if row.remark:
        parts.append(f"<span>{content(shortened(row.remark, LONGEST_TITLE))}</span>")
    if row.event_id is not None:
        parts.append(f"<i>{'after ' * row.is_after}event {content(shortened(row.event_id, LONGEST_ID))}</i>")
    if row.connection is not None:
        parts.append(f"<i>conn {row.connection}</i>")
    if row.id is not None:
        parts.append(f"<i>id {content(shortened(row.id, LONGEST_TITLE))}</i>")
    if row.size is not None or row.latency_us is not None:
        parts.append(f"<u>{'' if row.size is None else size(row.size)}</u>")
    if row.latency_us is not None:
        parts.append(f"<u>{duration(row.latency_us)}</u>")
    return "".join(parts)


def _title_of_noise(row: Row) -> str:
    if row.kind == BLANK:
        return "blank line"
    if row.kind == REPORT:
        return f"about {link(row.n)}"
    return content(row.title)


def _stderr(row: Row, style: Style) -> str:
    start = f"{_start(row)}<b>stderr</b>"
    if len(row.title) <= LONGEST_LINE:
        return f"<p>{start}<samp>{content(row.title)}</samp></p>"
    summary = f"<summary>{start}<samp>{content(shortened(row.title, LONGEST_LINE // 2))}</samp></summary>"
    return f"<details{' open' if style.whole else ''}>{summary}<pre>{lines_content(row.title)}</pre></details>"


def _payload(message: Message) -> str:
    """The message's own text; of a batch, whose elements have rows of their own, nothing."""
    if message.kind == "batch" and isinstance(message.body, list) and message.body:
        return ""
    text = message.raw.decode(errors="backslashreplace").removeprefix("\ufeff")
    if not text:
        return ""
    is_json = NOT_JSON not in message.flaws and message.kind != INVALID and INCOMPLETE.isdisjoint(message.flaws)
    shown = json_content(text) if is_json else lines_content(text)
    if TRUNCATED in message.frame.flaws:
        kept = f"mcpsniff kept the first {size(len(message.frame.payload))} of {size(message.frame.size)} to show"
        shown += f"\n… {kept}; the wire and the capture carry all"
    return shown


def _findings(row: Row) -> str:
    """The findings on a row; one on an event without a row is where links to that event lead."""
    parts: list[str] = []
    anchored = {row.n}
    for finding in row.findings:
        anchor = ""
        if finding.message is None and finding.at not in anchored:
            anchored.add(finding.at)
            anchor = f" id=n{finding.at}"
        parts.append(f"<p class={finding.severity}{anchor}>{finding_content(finding)}</p>")
    return "".join(parts)


def finding_content(finding: Finding) -> str:
    """What a finding says, and what to do about it."""
    fix = what_to_do(finding)
    head = (
        f"{MARKS.get(finding.severity, '•')} {finding.severity} <b>{content(finding.code)}</b> {content(finding.name)}"
    )
    said = f"{head}, by {blamed(finding.blame)}"
    if finding.text:
        said += f": <span>{content(finding.text)}</span>"
    return f"{said} <small>Fix: {content(fix)}</small>" if fix else said
