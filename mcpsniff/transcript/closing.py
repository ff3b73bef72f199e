"""The end of a transcript: what the session comes to, as lines; the Markdown form has the same in a fenced block."""

from collections.abc import Callable, Iterator
from typing import Final

from mcpsniff.checks import REGISTRY
from mcpsniff.protocol.exchanges import OPEN
from mcpsniff.transcript.layout import cells, flowed, wrapped
from mcpsniff.transcript.pretty import Line
from mcpsniff.transcript.safe import shortened, visible
from mcpsniff.transcript.summary import Calls, Fault, Summary
from mcpsniff.transcript.text import MARKS, blamed
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


def closing_lines(summary: Summary, width: int) -> Iterator[Line]:
    """The summary: counts, latencies, requests without an answer, findings worst first."""
    yield []
    yield [("heading", "Summary")]
    yield from _counts(summary, width)
    yield from _latencies(summary, width)
    yield from _unanswered(summary, width)
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
    first, severity = fault.first, fault.severity
    times = f" ×{fault.count:,}" if fault.count > 1 else ""
    head = (severity, f"{MARKS.get(severity, '•')} {first.code} {visible(first.name)}{times}")
    yield from flowed([[head], [("remark", f"  {places(fault)}, by {blamed(first.blame)}")]], width, 2)
    check = REGISTRY.get(first.code)
    text = first.text if fault.count == 1 or check is None or not check.summary else check.summary
    for line in wrapped(visible(text), width - 4):
        yield [("", "    "), ("plain", line)]


def places(fault: Fault, show: Callable[[int], str] = "#{}".format) -> str:
    """``at #3, #9 and 4 more``."""
    numbers = list(dict.fromkeys(fault.places))
    more = fault.count - len(fault.places)
    shown = ", ".join(show(number) for number in numbers)
    return f"at {shown} and {more:,} more" if more > 0 else f"at {shown}"


def _counts(summary: Summary, width: int) -> Iterator[Line]:
    kinds = ", ".join(count(summary.kinds[kind], *nouns) for kind, nouns in _KINDS.items() if summary.kinds.get(kind))
    total = sum(summary.messages.values())
    for line in wrapped(f"{count(total, 'message')} in {duration(summary.last_t)}: {kinds or 'nothing'}", width - 2):
        yield [("", "  "), ("plain", line)]
    sent = ", ".join(
        f"{who} {size(summary.bytes[direction])} in {count(summary.messages[direction], 'message')}"
        for direction, who in _DIRECTIONS.items()
    )
    if summary.stderr_lines:
        sent += f", {count(summary.stderr_lines, 'line')} on stderr"
    for line in wrapped(f"sent: {sent}", width - 2):
        yield [("", "  "), ("plain", line)]


def _latencies(summary: Summary, width: int) -> Iterator[Line]:
    if not summary.methods:
        return
    names = min(max(_widest(summary), 12), max(width - 50, 12))
    yield []
    yield [
        (
            "label",
            f"  {'method':<{names}}  {'calls':>6} {'failed':>6} {'p50':>9} {'p95':>9} {'max':>9}"[
                : width if width >= 60 else names + 27
            ],
        )
    ]
    busiest = sorted(summary.methods.items(), key=lambda item: (item[0][0], -item[1].count, item[0][1]))
    for (direction, method), calls in busiest:
        arrow = "" if direction == "c2s" else "← "
        yield _latency_line(arrow + visible(method), calls, names, width)
        for target, part in sorted(calls.targets.items(), key=lambda item: (-item[1].count, item[0])):
            yield _latency_line("  " + visible(target), part, names, width)


def _latency_line(name: str, calls: Calls, names: int, width: int) -> Line:
    name = shortened(name, names)
    padded = name + " " * max(names - cells(name), 0)
    timed = calls.latencies
    figures = [duration(timed.percentile(50)), duration(timed.percentile(95)), duration(timed.largest)]
    shown = " ".join(f"{figure if timed.count else '':>9}" for figure in figures)
    failed = f"{calls.failed or '':>6}"
    line: Line = [
        ("plain", f"  {padded}  "),
        ("plain", f"{calls.count:>6} "),
        ("bad", failed),
        ("latency", f" {shown}"),
    ]
    return (
        line
        if width >= 60
        else [("plain", f"  {padded}  {calls.count:>6} {failed} {figures[0] if timed.count else '':>9}")]
    )


def _widest(summary: Summary) -> int:
    names = [cells(visible(method)) + 2 * (direction == "s2c") for direction, method in summary.methods]
    targets = [cells(visible(t)) + 2 for calls in summary.methods.values() for t in calls.targets]
    return max(names + targets)


def _unanswered(summary: Summary, width: int) -> Iterator[Line]:
    waiting = summary.waiting
    if waiting:
        yield []
        yield [("heading", f"{count(waiting, 'request')} without an answer")]
    for exchange in summary.unanswered:
        about = f" {visible(exchange.target)}" if exchange.target else ""
        state = (
            "still open" if exchange.state == OPEN else f"given up after {duration(exchange.t - exchange.t_request)}"
        )
        request = ("plain", f"#{exchange.request} {visible(exchange.method)}{about}")
        remark = ("remark", f"  id {shortened(visible(exchange.id), 20)}, {state}")
        yield from flowed([[request], [remark]], width, 2)
    if waiting > len(summary.unanswered):
        yield [("remark", f"  and {waiting - len(summary.unanswered):,} more")]
    if summary.cancelled:
        yield []
        yield [("heading", f"{count(summary.cancelled, 'request')} cancelled")]
