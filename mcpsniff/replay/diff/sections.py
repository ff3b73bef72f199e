"""Compare two captures: what the peers are, what they declare, what was asked and answered, how fast, what was wrong.

`diff` gives a `Report`; `mcpsniff.replay.diff.text`, ``diff_markdown`` and ``diff_json`` show it. Of the two captures
the first is *A*, the recorded one, and the second *B*.
"""

from collections.abc import Callable, Collection, Iterator
from typing import Any, Final

from mcpsniff.checks import RECORDER, TIMING
from mcpsniff.replay.compare import Difference, compare
from mcpsniff.replay.diff.exchanges import exchange_entries
from mcpsniff.replay.diff.facts import LISTS, Facts, Listed, Server
from mcpsniff.replay.diff.report import ADDED, CHANGED, MISSING, Entry, Report, Section
from mcpsniff.replay.normalise import Pairs, Rules
from mcpsniff.transcript.units import count, duration

CAPABILITIES: Final = "capabilities"
DEFINITIONS: Final = "definitions"
EXCHANGES: Final = "exchanges"
LATENCY: Final = "latency"
FINDINGS: Final = "findings"

SECTIONS: Final = {
    CAPABILITIES: "who the client and the server are, their revisions, capabilities and instructions",
    DEFINITIONS: "tools, resources, resource templates and prompts, from the last complete list of each",
    EXCHANGES: "requests and what came of them",
    LATENCY: "median and 95th percentile by method, where they changed much; never makes captures differ",
    FINDINGS: "findings by code; those about time and about the recording never make captures differ",
}
"""The parts of a comparison."""

MEDIAN_OF: Final = 5
"""Answers that a method needs in both captures for its median to be told."""
P95_OF: Final = 20
"""The same for its 95th percentile."""
FACTOR: Final = 2.0
"""By how much a latency has to change to be told."""
LEAST_US: Final = 5_000
"""By how many microseconds it has to change, too: less is noise."""

type Paired = list[tuple[Server | None, Server | None]]


def diff(a: Facts, b: Facts, rules: Rules, only: Collection[str] = ()) -> Report:
    """Compare two captures by ``rules``; ``only`` names some of the SECTIONS, none means all."""
    report = Report(a, b)
    servers = paired(a, b, rules)
    pairs = Pairs()
    makers: dict[str, Callable[[], Section]] = {
        CAPABILITIES: lambda: Section(CAPABILITIES, list(_capabilities(servers, rules, pairs))),
        DEFINITIONS: lambda: Section(DEFINITIONS, list(_definitions(servers, rules, pairs))),
        EXCHANGES: lambda: _exchanges(servers, rules, pairs),
        LATENCY: lambda: Section(LATENCY, list(_latency(servers))),
        FINDINGS: lambda: Section(FINDINGS, list(_findings(a, b))),
    }
    report.sections = [make() for name, make in makers.items() if not only or name in only]
    report.notes = [f"{name}: {lack}" for name, facts in (("A", a), ("B", b)) for lack in facts.lacks] + pairs.notes
    return report


def paired(a: Facts, b: Facts, rules: Rules) -> Paired:
    """Which server of the one capture is which of the other: the only one the only one, else by origin."""
    ours, theirs = list(a.servers.values()), list(b.servers.values())
    if len(ours) == len(theirs) == 1:
        return [(ours[0], theirs[0])]
    left: dict[str, list[Server]] = {}
    for server in theirs:
        left.setdefault(rules.text_form(server.authority), []).append(server)
    found: Paired = []
    for server in ours:
        partners = left.get(rules.text_form(server.authority))
        found.append((server, partners.pop(0) if partners else None))
    return [*found, *((None, server) for rest in left.values() for server in rest)]


def _where(servers: Paired, one: Server | None, other: Server | None) -> str:
    """Which server is meant, where there are several."""
    server = one or other
    return server.authority if server is not None and len(servers) > 1 else ""


def _capabilities(servers: Paired, rules: Rules, pairs: Pairs) -> Iterator[Entry]:
    for one, other in servers:
        where = _where(servers, one, other)
        if one is None or other is None:
            kind = ADDED if one is None else MISSING
            yield Entry(kind, "server", where or "(the wrapped server)")
            continue
        for difference in compare(one.opening, other.opening, rules, pairs):
            kind = difference.kind if difference.kind in (ADDED, MISSING) else CHANGED
            yield Entry(kind, "capability", str(difference.path[0]), where=where, differences=[difference])


def _definitions(servers: Paired, rules: Rules, pairs: Pairs) -> Iterator[Entry]:
    for one, other in servers:
        if one is None or other is None:
            continue
        where = _where(servers, one, other)
        for method, listed in LISTS.items():
            ours, theirs = one.lists.get(method), other.lists.get(method)
            if ours is not None and theirs is not None:
                for entry in _defined(listed, ours.elements, theirs.elements, rules, pairs):
                    entry.where = where
                    yield entry
            elif ours is not None or theirs is not None:
                kind, listing, lacking = (MISSING, ours, "B") if theirs is None else (ADDED, theirs, "A")
                number = len(listing.elements) if listing is not None else 0
                remark = f"{number:,} listed, and never in {lacking}"
                yield Entry(kind, f"{listed.noun}s", method, remark, where)


def _defined(listed: Listed, ours: list[Any], theirs: list[Any], rules: Rules, pairs: Pairs) -> Iterator[Entry]:
    """Definitions by name; of equal names the first is the first."""
    left = _by_name(listed, theirs, rules)
    kept: list[tuple[int, Any]] = []
    for (name, turn), (index, element) in _by_name(listed, ours, rules).items():
        partner = left.pop((name, turn), None)
        if partner is None:
            yield Entry(MISSING, listed.noun, _name_of(listed, element))
            continue
        differences = compare(element, partner[1], rules, pairs, at=("result", listed.member, index))
        kept.append((partner[0], element))
        if differences:
            shown = _name_of(listed, element)
            yield Entry(CHANGED, listed.noun, shown, differences=differences, beneath=3)
    for _, element in left.values():
        yield Entry(ADDED, listed.noun, _name_of(listed, element))
    moved = [index for index, _ in kept]
    if moved != sorted(moved) and not rules.is_set(("result", listed.member)):
        yield Entry(CHANGED, f"{listed.noun}s", listed.member, "listed in another order")


def _by_name(listed: Listed, elements: list[Any], rules: Rules) -> dict[tuple[str, int], tuple[int, Any]]:
    found: dict[tuple[str, int], tuple[int, Any]] = {}
    turns: dict[str, int] = {}
    for index, element in enumerate(elements):
        name = rules.text_form(_name_of(listed, element))
        turns[name] = turns.get(name, 0) + 1
        found[name, turns[name]] = index, element
    return found


def _name_of(listed: Listed, element: Any) -> str:
    name = element.get(listed.key) if isinstance(element, dict) else None
    return name if isinstance(name, str) else "(without a name)"


def _exchanges(servers: Paired, rules: Rules, pairs: Pairs) -> Section:
    section = Section(EXCHANGES, [])
    for one, other in servers:
        where = _where(servers, one, other)
        matched, entries = exchange_entries(one, other, rules, pairs, where)
        section.matched += matched
        section.entries += entries
    return section


def _latency(servers: Paired) -> Iterator[Entry]:
    for one, other in servers:
        if one is None or other is None:
            continue
        for key, before in one.latencies.items():
            now = other.latencies.get(key)
            if now is None:
                continue
            told: list[str] = []
            facts: dict[str, Any] = {"direction": key[0], "answers": [before.count, now.count]}
            for name, percent, least in (("median", 50, MEDIAN_OF), ("p95", 95, P95_OF)):
                was, is_now = before.percentile(percent), now.percentile(percent)
                if min(before.count, now.count) >= least and _much(was, is_now):
                    told.append(f"{name} {duration(was)} → {duration(is_now)} ({_times(was, is_now)})")
                    facts[f"{name}_us"] = [was, is_now]
            if told:
                remark = f"{', '.join(told)}, {before.count:,} and {now.count:,} answers"
                where = _where(servers, one, other)
                yield Entry(CHANGED, "latency", key[1], remark, where, counts=False, facts=facts)


def _much(was: int, is_now: int) -> bool:
    low, high = sorted((was, is_now))
    return high - low >= LEAST_US and high >= FACTOR * low


def _times(was: int, is_now: int) -> str:
    low, high = max(min(was, is_now), 1), max(was, is_now)
    return f"{high / low:.1f} times {'slower' if is_now > was else 'faster'}"


def _findings(a: Facts, b: Facts) -> Iterator[Entry]:
    for key in sorted({*a.findings, *b.findings}):
        ours, theirs = a.findings.get(key), b.findings.get(key)
        known = ours or theirs
        numbers = [0 if found is None else found.count for found in (ours, theirs)]
        if known is None or numbers[0] == numbers[1]:
            continue
        first = (theirs or known).first
        kind = ADDED if ours is None else MISSING if theirs is None else CHANGED
        times = f"{numbers[0]:,} → {numbers[1]:,} times" if kind == CHANGED else count(max(numbers), "time")
        remark = f"{times}, {first.severity}, by {first.blame}: {first.text}"
        counts = first.group not in (TIMING, RECORDER)
        facts: dict[str, Any] = {"code": first.code, "severity": first.severity, "blame": first.blame}
        facts |= {"numbers": numbers, "text": first.text}
        yield Entry(kind, "finding", f"{first.code} {first.name}", remark, counts=counts, facts=facts)


__all__ = ["SECTIONS", "Difference", "diff", "paired"]
