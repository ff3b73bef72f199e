"""A comparison of two captures as text and as Markdown."""

import os
from collections.abc import Iterator
from typing import Final

from mcpsniff.replay.compare import Difference
from mcpsniff.replay.compare_text import NEW, OLD, OTHER, difference_lines
from mcpsniff.replay.diff.facts import Facts
from mcpsniff.replay.diff.report import ADDED, CHANGED, MARKS, MISSING, Entry, Report, Section
from mcpsniff.transcript.head import EDITORS_NAMED
from mcpsniff.transcript.layout import flowed, wrapped
from mcpsniff.transcript.pretty import Line
from mcpsniff.transcript.safe import markdown_code, markdown_fence, markdown_text, visible
from mcpsniff.transcript.servers import listed
from mcpsniff.transcript.units import count

ROLES: Final = {ADDED: NEW, MISSING: OLD, CHANGED: OTHER}
EQUAL: Final = "The captures say the same."
_WHERE: Final = {ADDED: "only in B", MISSING: "only in A", CHANGED: "changed"}


def diff_lines(report: Report, width: int) -> Iterator[Line]:
    """The report as lines of about ``width`` cells."""
    yield from _sides(report, width)
    for section in report.sections:
        yield []
        yield from flowed(_heading(section), width, 0)
        for entry in section.entries:
            yield from _entry(entry, width)
    if report.notes:
        yield []
        yield [("heading", "Notes")]
        for note in report.notes:
            for line in wrapped(visible(note), width - 2):
                yield [("", "  "), ("remark", line)]
    yield []
    yield [("heading", verdict(report))]


def verdict(report: Report) -> str:
    """The last line: equal, or how many differences."""
    return f"{count(report.differences, 'difference')}." if report.differences else EQUAL


def _sides(report: Report, width: int) -> Iterator[Line]:
    for name, role, facts in (("A", OLD, report.a), ("B", NEW, report.b)):
        yield [(role, f"{'-' if name == 'A' else '+'} {name}  "), ("plain", visible(facts.path))]
        for text in (about(facts), edited(facts)):
            for line in wrapped(visible(text), width - 5) if text else ():
                yield [("", "     "), ("remark", line)]


def about(facts: Facts) -> str:
    """What a capture is, in a few words; captured text."""
    servers = [server.authority for server in facts.servers.values() if server.authority]
    named = f" with {', '.join(servers[:5])}{' and others' if len(servers) > 5 else ''}" if servers else ""
    label = f"{facts.label}, " if facts.label and facts.label != os.path.basename(facts.path) else ""
    return f"{label}{facts.transport}, {count(facts.messages, 'message')}{named}"


def edited(facts: Facts) -> str:
    """What was changed on the way in a capture, by whom; empty if nothing was. Captured text."""
    if not facts.edits.total:
        return ""
    names = [f"{name} {times:,}" for name, times in facts.edits.names()]
    by = listed(names, EDITORS_NAMED)
    return f"edited on the way: {count(facts.edits.total, 'edit')} by {by}; compared is what came"


def summary(section: Section) -> str:
    """What a section comes to, in a few words."""
    numbers = [f"{section.number(kind):,} {words}" for kind, words in _WHERE.items() if section.number(kind)]
    if section.name == "exchanges":
        numbers.insert(0, f"{section.matched:,} in both")
    if section.entries and not section.differences:
        numbers.append("not counted as a difference")
    return ", ".join(numbers) if section.entries or section.matched else "no difference"


def _heading(section: Section) -> list[Line]:
    return [[("heading", section.name.capitalize())], [("remark", f"  {summary(section)}")]]


def _entry(entry: Entry, width: int) -> Iterator[Line]:
    role = ROLES[entry.kind] if entry.counts else "remark"
    differences = beneath(entry)
    if entry.what == "capability":
        yield from difference_lines(differences, width, indent=2)
        return
    head = f"{MARKS[entry.kind]} {title(entry)}"
    if entry.remark:
        head += f": {entry.remark}"
    for index, line in enumerate(wrapped(visible(head), width - 4)):
        yield [("", "    " if index else "  "), (role, line)]
    yield from difference_lines(differences, width, indent=6)


def title(entry: Entry) -> str:
    """What an entry is about; captured text."""
    shown = entry.name if entry.what in ("exchange", "latency", "finding") else f"{entry.what} {entry.name}"
    return f"{shown} at {entry.where}" if entry.where else shown


def beneath(entry: Entry) -> list[Difference]:
    """The differences with paths that begin at what the entry is about."""
    skip = entry.beneath
    if not skip:
        return entry.differences
    return [
        Difference(one.path[skip:], one.kind, one.recorded, one.live, one.live_path[skip:]) for one in entry.differences
    ]


def diff_markdown(report: Report) -> Iterator[str]:
    """The report as lines of Markdown."""
    yield "# Comparison of two captures"
    yield ""
    for name, facts in (("A", report.a), ("B", report.b)):
        told = ", ".join(markdown_code(text) for text in (about(facts), edited(facts)) if text)
        yield f"- **{name}** {markdown_code(facts.path)}: {told}"
    yield ""
    yield f"**{verdict(report)}**"
    for section in report.sections:
        yield ""
        yield f"## {section.name.capitalize()}"
        yield ""
        yield markdown_text(summary(section))
        if section.entries:
            yield ""
            lines = [line for entry in section.entries for line in _entry(entry, WIDTH)]
            yield from markdown_fence(["".join(text for _, text in line).rstrip()[2:] for line in lines], "diff")
    if report.notes:
        yield ""
        yield "## Notes"
        yield ""
        yield from (f"- {markdown_code(note)}" for note in report.notes)


WIDTH: Final = 120
"""Of the lines in a fenced block."""
