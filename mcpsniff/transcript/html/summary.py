"""What stands above the messages: who talked and when, what was found, how much was said and how fast."""

from collections.abc import Iterable, Iterator
from typing import Final

from mcpsniff.checks import REGISTRY
from mcpsniff.protocol.exchanges import OPEN, Exchange
from mcpsniff.transcript.advice import what_to_do
from mcpsniff.transcript.closing import LOST_ON_THE_WAY
from mcpsniff.transcript.edit_rows import lost_words
from mcpsniff.transcript.head import Entry
from mcpsniff.transcript.html.markup import content, link
from mcpsniff.transcript.safe import shortened
from mcpsniff.transcript.summary import Calls, Fault, Summary, is_refused
from mcpsniff.transcript.text import MARKS, blamed
from mcpsniff.transcript.units import count, duration, size

_KINDS: Final = {
    "request": ("request", "requests"),
    "response": ("response", "responses"),
    "error": ("error response", "error responses"),
    "notification": ("notification", "notifications"),
    "batch": ("batch", "batches"),
    "invalid": ("invalid", "invalid"),
}
_SIDES: Final = {"c2s": "The client", "s2c": "the server"}
LONGEST: Final = 1000


def head_section(label: str, entries: Iterable[Entry]) -> Iterator[str]:
    """The title, and what was recorded, when, and what the two sides agreed on."""
    yield "<header>\n<p class=brand>mcpsniff</p>\n"
    yield f"<h1>MCP session{f' with <code>{content(shortened(label, LONGEST))}</code>' if label else ''}</h1>\n<dl>\n"
    for entry in entries:
        value = f"<span>{content(entry.value)}</span>" if entry.value else ""
        remark = f"<small>{content(entry.remark)}</small>" if entry.remark else ""
        yield f"<div><dt>{content(entry.name)}</dt><dd>{' '.join(filter(None, (value, remark))) or '–'}</dd></div>\n"
    yield "</dl>\n</header>\n"


def findings_section(summary: Summary) -> Iterator[str]:
    """The findings by code, worst first, with links to where they were found."""
    yield "<section id=findings aria-labelledby=h-findings>\n<h2 id=h-findings>Findings</h2>\n"
    faults = summary.worst_first()
    if not faults:
        yield "<p class=good>None: nothing that mcpsniff checks was wrong.</p>\n</section>\n"
        return
    yield f"<p>{', '.join(count(number, severity) for severity, number in summary.severities().items())}</p>\n"
    yield "<ul role=list>\n"
    for fault in faults:
        yield _fault(fault)
    yield "</ul>\n</section>\n"


def _fault(fault: Fault) -> str:
    first = fault.first
    times = f" ×{fault.count:,}" if fault.count > 1 else ""
    head = (
        f"{MARKS.get(first.severity, '•')} {first.severity} <b>{content(first.code)}</b> {content(first.name)}{times}"
    )
    parts = [f"<li class={first.severity}><h3>{head}<small>, by {blamed(first.blame)}, {_places(fault)}</small></h3>"]
    if first.text:
        more = f" <small>and {fault.count - 1:,} more like it</small>" if fault.count > 1 else ""
        parts.append(f"<p>{content(first.text)}{more}</p>")
    check = REGISTRY.get(first.code)
    if check is not None and check.summary:
        parts.append(f"<p class=why>{content(check.summary.replace('``', ''))}</p>")
    if fix := what_to_do(first):
        parts.append(f"<p class=fix>Fix: {content(fix)}</p>")
    return "".join(parts) + "</li>\n"


def _places(fault: Fault) -> str:
    numbers = list(dict.fromkeys(fault.places))
    more = fault.count - len(fault.places)
    shown = ", ".join(link(number) for number in numbers)
    return f"at {shown} and {more:,} more" if more > 0 else f"at {shown}"


def summary_section(summary: Summary) -> Iterator[str]:
    """Counts, latencies per method and per tool, requests without an answer."""
    yield "<section id=summary aria-labelledby=h-summary>\n<h2 id=h-summary>Summary</h2>\n"
    kinds = ", ".join(count(summary.kinds[kind], *nouns) for kind, nouns in _KINDS.items() if summary.kinds.get(kind))
    messages = sum(summary.messages.values())
    total = count(messages, "message")
    if summary.of is not None:
        total = f"The filter shows {messages:,} of {count(summary.of, 'message')}"
    yield f"<p>{total} in {duration(summary.last_t)}: {kinds or summary.http.briefly() or 'nothing'}.</p>\n"
    sent = [
        f"{who} sent {size(summary.bytes[direction])} in {count(summary.messages[direction], 'message')}"
        for direction, who in _SIDES.items()
    ]
    if summary.stderr_lines:
        sent.append(f"{count(summary.stderr_lines, 'line')} on stderr")
    yield f"<p>{content(', '.join(sent))}.</p>\n"
    for line in summary.http.lines():
        yield f"<p>{content(line.replace('event', 'Event', 1) if line.startswith('event') else line)}.</p>\n"
    for line in summary.edits.lines():
        yield f"<p>{content(line.replace('on', 'On', 1))}.</p>\n"
    if summary.methods:
        yield from _table(summary)
    yield from _requests(summary.refused_first, summary.refused, "refused with an HTTP status", summary.last_t)
    yield from _requests(summary.unanswered, summary.waiting, "without an answer", summary.last_t)
    yield from _undelivered(summary)
    yield from _requests(summary.cancelled_first, summary.cancelled, "cancelled", summary.last_t)
    yield from _conversations(summary)
    yield "</section>\n"


def _table(summary: Summary) -> Iterator[str]:
    names = ("method", "calls", "failed", "no answer", "p50", "p95", "max")
    yield '<div class=scroll tabindex=0 role=region aria-label="Latencies per method">\n<table>\n<thead><tr>'
    yield "".join(f"<th scope=col>{name}</th>" for name in names) + "</tr></thead>\n<tbody>\n"
    for (direction, method), calls in sorted(
        summary.methods.items(), key=lambda item: (item[0][0], -item[1].count, item[0][1])
    ):
        asked = "" if direction == "c2s" else " <small>asked by the server</small>"
        yield _line(f"{content(shortened(method, LONGEST))}{asked}", calls)
        for target, part in sorted(calls.targets.items(), key=lambda item: (-item[1].count, item[0])):
            yield _line(content(shortened(target, LONGEST)), part, " class=part")
    yield "</tbody>\n</table>\n</div>\n"


def _line(name: str, calls: Calls, kind: str = "") -> str:
    measured = calls.latencies
    figures = [duration(us) for us in (measured.percentile(50), measured.percentile(95), measured.largest)]
    cells = [
        f"<td>{calls.count:,}</td>",
        f"<td class=bad>{calls.failed:,}</td>" if calls.failed else "<td></td>",
        f"<td class=bad>{calls.unanswered:,}</td>" if calls.unanswered else "<td></td>",
        *(f"<td>{figure if measured.count else ''}</td>" for figure in figures),
    ]
    return f"<tr{kind}><th scope=row>{name}</th>{''.join(cells)}</tr>\n"


def _requests(named: list[Exchange], total: int, what: str, now: int) -> Iterator[str]:
    """How many requests came to no answer, and the first of them by name."""
    if not total:
        return
    yield f"<h3>{count(total, 'request')} {what}</h3>\n<ul class=requests>\n"
    for exchange in named:
        about = f" <em>{content(shortened(exchange.target, LONGEST))}</em>" if exchange.target else ""
        waited = max((now if exchange.state == OPEN else exchange.t) - exchange.t_request, 0)
        name = f"<b>{content(shortened(exchange.method, LONGEST))}</b>{about}"
        state = "still open" if exchange.state == OPEN else exchange.state
        state = f"HTTP {exchange.status}" if is_refused(exchange) else state
        remark = f"id {content(shortened(exchange.id, 80))}, {state} after {duration(waited)}"
        yield f"<li>{link(exchange.request)} {name} <small>{remark}</small></li>\n"
    if total > len(named):
        yield f"<li>and {total - len(named):,} more</li>\n"
    yield "</ul>\n"


def _undelivered(summary: Summary) -> Iterator[str]:
    """Whose answers were lost on the way, and who did that."""
    if not summary.undelivered:
        return
    yield f"<h3>{count(summary.undelivered, 'request')} {LOST_ON_THE_WAY}</h3>\n<ul class=requests>\n"
    for exchange in summary.undelivered_first:
        about = f" <em>{content(shortened(exchange.target, LONGEST))}</em>" if exchange.target else ""
        name = f"<b>{content(shortened(exchange.method, LONGEST))}</b>{about}"
        remark = f"id {content(shortened(exchange.id, 80))}, {content(lost_words(exchange))}"
        yield f"<li>{link(exchange.request)} {name} <small>{remark}</small></li>\n"
    if summary.undelivered > len(summary.undelivered_first):
        yield f"<li>and {summary.undelivered - len(summary.undelivered_first):,} more</li>\n"
    yield "</ul>\n"


def _conversations(summary: Summary) -> Iterator[str]:
    """What each conversation comes to, where there are several."""
    talks = summary.talks
    if talks is None or talks.count < 2:
        return
    yield f"<h3>{count(talks.count, 'conversation')}</h3>\n<ul class=requests>\n"
    for number, talk in talks.named.items():
        counts = summary.by_talk.counts.get(number)
        who = "; ".join([*talks.names(talk), *filter(None, (talk.told(),))])
        told = counts.told() if counts else "nothing shown"
        yield f"<li>[{number}] {content(shortened(who, LONGEST))} <small>{told}</small></li>\n"
    if talks.count > len(talks.named):
        yield f"<li>and {talks.count - len(talks.named):,} more</li>\n"
    yield "</ul>\n"
