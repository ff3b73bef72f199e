"""The end of a transcript: what the session comes to, as lines; the Markdown form has the same in a fenced block."""

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from mcpsniff.protocol.exchanges import ABANDONED, CANCELLED, OPEN, Exchange
from mcpsniff.transcript.edit_rows import lost_words
from mcpsniff.transcript.layout import cells, fitted, flowed, length, wrapped
from mcpsniff.transcript.pretty import Line
from mcpsniff.transcript.safe import shortened, visible
from mcpsniff.transcript.summary import Calls, Fault, Summary, is_refused
from mcpsniff.transcript.text import COLOURS, MARKS, blamed
from mcpsniff.transcript.units import count, duration, size

_DIRECTIONS: Final = {"c2s": "client", "s2c": "server"}
_KINDS: Final = {
    "request": ("request", "requests"),
    "response": ("response", "responses"),
    "error": ("error response", "error responses"),
    "notification": ("notification", "notifications"),
    "batch": ("batch", "batches"),
    "invalid": ("invalid", "invalid"),
}

LOST_ON_THE_WAY: Final = "answered in vain: the answer was lost, or held too long, on the way"
_COME_TO: Final = {OPEN: "still open after", ABANDONED: "no answer in", CANCELLED: "cancelled after"}


class Column(NamedTuple):
    """A column of the table of methods."""

    title: str
    room: int
    role: str
    value: Callable[[Calls], str]


def _latency(percent: float) -> Callable[[Calls], str]:
    return lambda calls: duration(calls.latencies.percentile(percent)) if calls.latencies.count else ""


COLUMNS: Final = (
    Column("calls", 7, "plain", lambda calls: f"{calls.count}"),
    Column("failed", 7, "bad", lambda calls: f"{calls.failed or ''}"),
    Column("no answer", 10, "bad", lambda calls: f"{calls.unanswered or ''}"),
    Column("p50", 10, "latency", _latency(50)),
    Column("p95", 10, "latency", _latency(95)),
    Column("max", 10, "latency", lambda calls: duration(calls.latencies.largest) if calls.latencies.count else ""),
)
"""The most important first: what finds no room is left out."""
NARROWEST_NAME: Final = 8


def closing_lines(summary: Summary, width: int) -> Iterator[Line]:
    """The summary: counts, latencies, requests without an answer, findings worst first."""
    yield []
    yield [("heading", "Summary")]
    yield from _counts(summary, width)
    yield from _latencies(summary, width)
    yield from _unanswered(summary, width)
    yield from _conversations(summary, width)
    yield from finding_lines(summary, width)


def finding_lines(summary: Summary, width: int) -> Iterator[Line]:
    """The findings by code, worst first, with how many there are and where."""
    yield []
    faults = summary.worst_first()
    if not faults:
        yield [("heading", "No findings")]
        return
    total = ", ".join(count(number, severity) for severity, number in summary.severities().items())
    yield from flowed([[("heading", "Findings")], [("remark", f"  {total}")]], width, 0)
    for fault in faults:
        yield from _fault(fault, width)


def _fault(fault: Fault, width: int) -> Iterator[Line]:
    first = fault.first
    times = f" ×{fault.count:,}" if fault.count > 1 else ""
    head = (first.severity, f"{MARKS.get(first.severity, '•')} {first.code} {visible(first.name)}{times}")
    yield from flowed([[head], [("remark", f"  {places(fault)}, by {blamed(first.blame)}")]], width, 2)
    for line in wrapped(f"{visible(first.text)}{and_more(fault)}", width - 4):
        yield [("", "    "), ("plain", line)]


def and_more(fault: Fault) -> str:
    """What follows the text of the first of several findings."""
    return f" (and {fault.count - 1:,} more like it)" if fault.count > 1 else ""


def places(fault: Fault, show: Callable[[int], str] = "#{}".format) -> str:
    """``at #3, #9 and 4 more``."""
    numbers = list(dict.fromkeys(fault.places))
    more = fault.count - len(fault.places)
    shown = ", ".join(show(number) for number in numbers)
    return f"at {shown} and {more:,} more" if more > 0 else f"at {shown}"


def _counts(summary: Summary, width: int) -> Iterator[Line]:
    kinds = ", ".join(count(summary.kinds[kind], *nouns) for kind, nouns in _KINDS.items() if summary.kinds.get(kind))
    total = count(sum(summary.messages.values()), "message")
    if summary.of is not None:
        total = f"the filter shows {sum(summary.messages.values()):,} of {count(summary.of, 'message')}"
    for line in wrapped(
        f"{total} in {duration(summary.last_t)}: {kinds or summary.http.briefly() or 'nothing'}", width - 2
    ):
        yield [("", "  "), ("plain", line)]
    sent = ", ".join(
        f"{who} {size(summary.bytes[direction])} in {count(summary.messages[direction], 'message')}"
        for direction, who in _DIRECTIONS.items()
    )
    if summary.stderr_lines:
        sent += f", {count(summary.stderr_lines, 'line')} on stderr"
    for text in (f"sent: {sent}", *map(visible, summary.http.lines()), *map(visible, summary.edits.lines())):
        for line in wrapped(text, width - 2):
            yield [("", "  "), ("plain", line)]


def _latencies(summary: Summary, width: int) -> Iterator[Line]:
    if not summary.methods:
        return
    columns: list[Column] = []
    for column in COLUMNS:
        if 4 + NARROWEST_NAME + sum(one.room for one in columns) + column.room <= width:
            columns.append(column)
    names = min(max(_widest(summary), 12), max(width - 4 - sum(one.room for one in columns), NARROWEST_NAME))
    yield []
    yield [("label", f"  {'method':<{names}} {''.join(f'{column.title:>{column.room}}' for column in columns)}")]
    busiest = sorted(summary.methods.items(), key=lambda item: (item[0][0], -item[1].count, item[0][1]))
    for (direction, method), calls in busiest:
        arrow = "" if direction == "c2s" else "← "
        yield _latency_line(arrow + visible(method), calls, names, columns)
        for target, part in sorted(calls.targets.items(), key=lambda item: (-item[1].count, item[0])):
            yield _latency_line("  " + visible(target), part, names, columns)


def _latency_line(name: str, calls: Calls, names: int, columns: list[Column]) -> Line:
    name = fitted(name, names)
    line: Line = [("plain", f"  {name}{' ' * (names - cells(name))} ")]
    return line + [(column.role, f"{column.value(calls):>{column.room}}") for column in columns]


def _widest(summary: Summary) -> int:
    names = [cells(visible(method)) + 2 * (direction == "s2c") for direction, method in summary.methods]
    targets = [cells(visible(t)) + 2 for calls in summary.methods.values() for t in calls.targets]
    return max(names + targets)


def _conversations(summary: Summary, width: int) -> Iterator[Line]:
    """What each conversation comes to, where there are several."""
    talks = summary.talks
    if talks is None or talks.count < 2:
        return
    yield []
    yield [("heading", count(talks.count, "conversation"))]
    for number, talk in talks.named.items():
        counts = summary.by_talk.counts.get(number)
        role = f"who-{number % COLOURS}"
        who = visible("; ".join([*talks.names(talk), *filter(None, (talk.told(),))]))
        first: Line = [("", "  "), (role, f"[{number}] ")]
        for line in wrapped(f"{who}: {counts.told() if counts else 'nothing shown'}", width - length(first)):
            yield [*first, ("plain", line)]
            first = [("", " " * length(first))]
    if talks.count > len(talks.named):
        yield [("remark", f"  and {talks.count - len(talks.named):,} more")]


def _unanswered(summary: Summary, width: int) -> Iterator[Line]:
    yield from _requests(summary.refused_first, summary.refused, "refused with an HTTP status", summary.last_t, width)
    yield from _requests(summary.unanswered, summary.waiting, "without an answer", summary.last_t, width)
    yield from _undelivered(summary, width)
    lacked = f"whose answer{'s' * (summary.unseen > 1)} this capture may lack"
    yield from _requests(summary.unseen_first, summary.unseen, lacked, summary.last_t, width)
    yield from _requests(summary.cancelled_first, summary.cancelled, "cancelled", summary.last_t, width)


def _undelivered(summary: Summary, width: int) -> Iterator[Line]:
    """Whose answers were lost on the way, and who did that."""
    if not summary.undelivered:
        return
    yield []
    yield [("heading", fitted(f"{count(summary.undelivered, 'request')} {LOST_ON_THE_WAY}", width))]
    for exchange in summary.undelivered_first:
        about = f" {visible(exchange.target)}" if exchange.target else ""
        request = ("plain", f"#{exchange.request} {visible(exchange.method)}{about}")
        yield from flowed([[request], [("remark", f"  id {shortened(visible(exchange.id), 20)}")]], width, 2)
        for line in wrapped(visible(lost_words(exchange)), width - 4):
            yield [("", "    "), ("remark", line)]
    if summary.undelivered > len(summary.undelivered_first):
        yield [("remark", f"  and {summary.undelivered - len(summary.undelivered_first):,} more")]


def _requests(named: list[Exchange], total: int, what: str, now: int, width: int) -> Iterator[Line]:
    """How many requests came to no answer, and the first of them by name."""
    if not total:
        return
    yield []
    yield [("heading", fitted(f"{count(total, 'request')} {what}", width))]
    for exchange in named:
        about = f" {visible(exchange.target)}" if exchange.target else ""
        waited = max((now if exchange.state == OPEN else exchange.t) - exchange.t_request, 0)
        if exchange.may_be_answered:
            came_to = f"sent {duration(exchange.t_request)} after the start"
        elif is_refused(exchange):
            came_to = f"HTTP {exchange.status} after {duration(waited)}"
        else:
            came_to = f"{_COME_TO[exchange.state]} {duration(waited)}" if waited else exchange.state
        request = ("plain", f"#{exchange.request} {visible(exchange.method)}{about}")
        remark = ("remark", f"  id {shortened(visible(exchange.id), 20)}, {came_to}")
        yield from flowed([[request], [remark]], width, 2)
    if total > len(named):
        yield [("remark", f"  and {total - len(named):,} more")]
