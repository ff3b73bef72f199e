"""A comparison of two captures as one JSON object, for programs."""

from typing import Any, Final

from mcpsniff.replay.compare_text import as_dict
from mcpsniff.replay.diff.facts import Facts
from mcpsniff.replay.diff.report import Entry, Report

MOST: Final = 1_000
"""Differences of one entry that are given; how many more there are is told."""


def diff_dict(report: Report) -> dict[str, Any]:
    """The report as plain JSON values; docs/replay.md describes them."""
    return {
        "a": _capture(report.a),
        "b": _capture(report.b),
        "equal": not report.differences,
        "differences": report.differences,
        "sections": [
            {
                "name": section.name,
                "differences": section.differences,
                **({"matched": section.matched} if section.name == "exchanges" else {}),
                "entries": [_entry(entry) for entry in section.entries],
            }
            for section in report.sections
        ],
        "notes": report.notes,
    }


def _capture(facts: Facts) -> dict[str, Any]:
    return {
        "path": facts.path,
        "label": facts.label,
        "transport": facts.transport,
        "messages": facts.messages,
        "servers": list(facts.servers),
        "edits": facts.edits.total,
        "edited_by": dict(facts.edits.names()),
        "lacks": facts.lacks,
    }


def _entry(entry: Entry) -> dict[str, Any]:
    found: dict[str, Any] = {"kind": entry.kind, "what": entry.what, "name": entry.name, "counts": entry.counts}
    if entry.remark:
        found["remark"] = entry.remark
    if entry.where:
        found["server"] = entry.where
    found |= entry.facts
    if entry.differences:
        found["differences"] = [as_dict(one, ("a", "b")) for one in entry.differences[:MOST]]
    if len(entry.differences) > MOST:
        found["more"] = len(entry.differences) - MOST
    return found
