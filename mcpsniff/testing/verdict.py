"""What came of a capture that was served to a test: the reports of all starts as one, and what is wrong in words."""

import json
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from typing import Any

from mcpsniff.transcript.safe import shortened, visible

type Report = dict[str, Any]
type Allowed = bool | Iterable[str]
"""All, none, or those whose method is one of these names, which may have ``*`` in them."""

LONGEST = 300
MOST_PATHS = 2


def merged(reports: list[Report]) -> Report:
    """One report of several: what was asked in any of them was asked; what was missed in any was missed."""
    if not reports:
        return {"starts": 0, "served": 0, "missed": 0, "misses": [], "never_asked": [], "answers": {"differences": []}}
    whole = {"starts": len(reports), **reports[-1]}
    for name in ("served", "missed", "made_up", "cancelled_only_now", "notifications_not_recorded"):
        whole[name] = sum(report.get(name, 0) for report in reports)
    whole["misses"] = [miss for report in reports for miss in report["misses"]]
    answers: Report = {}
    for report in reports:
        for name, value in report.get("answers", {}).items():
            answers[name] = answers[name] + value if name in answers else value
    whole["answers"] = answers
    others = [{one["n"] for one in report["never_asked"]} for report in reports]
    whole["never_asked"] = [one for one in reports[-1]["never_asked"] if all(one["n"] in numbers for numbers in others)]
    whole["played"] = whole.get("recorded", 0) - len(whole["never_asked"])
    return whole


def faults(report: Report, *, allow_missed: Allowed = False, allow_unasked: Allowed = False) -> list[str]:
    """What is wrong, in lines that are safe to print: what was asked and not recorded, recorded and not asked."""
    lines: list[str] = []
    for miss in report["misses"]:
        if not _is_allowed(miss["method"], allow_missed):
            lines += [f"missed: {miss['text']}", *(f"    {line}" for line in _differences(miss)), *_remedies(miss)]
    if report["missed"] > len(report["misses"]) and allow_missed is not True:
        lines.append(f"missed: {report['missed'] - len(report['misses']):,} more")
    lines += [
        f"never asked: #{one['n']} {one['method']}{' ' + one['target'] if one['target'] else ''}"
        for one in report["never_asked"]
        if not _is_allowed(one["method"], allow_unasked)
    ]
    return [visible(line) for line in lines]


def remarks(report: Report) -> list[str]:
    """What differs besides and is no fault: answers of the client that are not those of the recording."""
    lines: list[str] = []
    for one in report["answers"].get("differences", []):
        came = "answered otherwise" if one["came"] else "not answered in time"
        lines += [f"{came}: #{one['asked']['n']} {one['asked']['method']}", *(f"    {d}" for d in _differences(one))]
    return [visible(line) for line in lines]


def _is_allowed(method: str | None, allowed: Allowed) -> bool:
    if isinstance(allowed, bool):
        return allowed
    names = [allowed] if isinstance(allowed, str) else allowed
    return any(fnmatchcase(method or "", name) for name in names)


def _remedies(miss: Report) -> Iterator[str]:
    """What the fixture can be told, so that the request is found all the same."""
    if miss.get("hint"):
        paths = [one["path"] for one in miss["differences"]]
        ways = [f"ignore={paths!r}"] if len(paths) <= MOST_PATHS else []
        yield f"    {', or '.join([*ways, 'match="method"'])}, takes it for the recorded one"


def _differences(told: Report) -> Iterator[str]:
    for one in told["differences"]:
        values = [
            f"{what} {shortened(json.dumps(one[name], ensure_ascii=False), LONGEST)}"
            for name, what in (("recorded", "recorded"), ("live", "now"))
            if name in one
        ]
        yield f"{one['path']} ({one['kind']}): {', '.join(values)}"
