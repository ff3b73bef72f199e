"""`mcpsniff explain CODE`: what a finding means, why it matters, what to do."""

import re
import sys
from collections.abc import Iterator
from difflib import get_close_matches
from fnmatch import translate
from typing import Final

import click

from mcpsniff.checks import ERROR, MCPSNIFF, NETWORK, REGISTRY, SEVERITIES, WARNING, Check, load
from mcpsniff.transcript.layout import wrapped
from mcpsniff.transcript.terminal import columns

WIDTH = 88
"""Of an explanation, where the terminal is not narrower."""
NARROW = 100
"""On a terminal with fewer columns the list of all codes has the faults below the names."""

OF_NO_PEER: Final = {
    (ERROR, NETWORK): "no rule is broken: the exchange failed",
    (WARNING, NETWORK): "no rule is broken: an exchange may have failed",
    (ERROR, MCPSNIFF): "no rule is broken: the exchange failed",
    (WARNING, MCPSNIFF): "no rule is broken: mcpsniff may be in the way, or what it shows may be incomplete",
}
"""What severities mean where neither client nor server is to blame."""

_NUMBERED = re.compile(r"(?:mcp)?([0-9]{1,3})x*")
"""``mcp5xx`` and ``54x``: the codes that begin like that."""


@click.command("explain")
@click.argument("code", required=False)
def command(code: str | None) -> None:
    """Explain a finding: what is wrong, why it matters, what to do.

    CODE is a code (MCP101) or a name (stdio-not-json). The beginning of one (MCP5, auth), or a pattern (MCP5*, MCP5xx,
    *-header*), lists all that it fits; without one, all codes are listed.
    """
    load()
    checks = sorted(REGISTRY.values(), key=lambda check: check.code)
    if code is None:
        click.echo("\n".join(_overview(checks, _columns())))
        return
    found = _meant(code, checks)
    if isinstance(found, list):
        click.echo("\n".join(_overview(found, _columns())))
    else:
        click.echo("\n".join(page(found, min(WIDTH, _columns() or WIDTH))))


def _columns() -> int | None:
    """How wide the terminal is; None where the output goes elsewhere."""
    return columns() if sys.stdout.isatty() else None


def _overview(checks: list[Check], columns: int | None) -> Iterator[str]:
    """All codes, each on one line; on a terminal what does not fit goes on below."""
    widest = max(len(check.name) for check in checks)
    for check in checks:
        summary = check.summary.replace("``", "")
        head = f"{check.code}  {check.name:<{widest}}  {check.severity:<7}"
        if columns is None:
            yield f"{head}  {summary}"
        elif columns >= NARROW:
            first, *more = wrapped(summary, columns - len(head) - 2)
            yield f"{head}  {first}"
            yield from (f"{'':{len(head) + 2}}{line}" for line in more)
        else:
            yield from wrapped(f"{check.code}  {check.name}, {check.severity}", columns)
            yield from (f"    {line}" for line in wrapped(summary, columns - 4))


def page(check: Check, width: int = WIDTH) -> list[str]:
    """The lines that explain a check, at most ``width`` columns wide."""
    means = OF_NO_PEER.get((check.severity, check.blame or ""), SEVERITIES[check.severity])
    facts = {
        "severity": f"{check.severity}: {means}",
        "group": check.group,
        "revisions": _revisions(check),
        "blame": check.blame,
        "source": check.spec,
    }
    lines = [*wrapped(f"{check.code} {check.name}", width), ""]
    for name, value in facts.items():
        for index, line in enumerate(wrapped(value, width - 13) if value else ()):
            lines.append(f"  {name if index == 0 else '':<9}  {line}")
    for paragraph in check.doc.split("\n\n"):
        lines.append("")
        lines += wrapped(" ".join(paragraph.split()).replace("``", ""), width)
    return lines


def _family(wanted: str, checks: list[Check]) -> list[Check]:
    """The checks whose code or name begins like that, or fits it as a pattern, or that are of that group."""
    if found := _NUMBERED.fullmatch(wanted):
        wanted = f"mcp{found[1]}"
    if not wanted.strip():
        return []
    pattern = wanted if set("*?") & set(wanted) else f"{wanted}*"
    texts = [re.compile(translate(one)).fullmatch for one in dict.fromkeys((pattern, f"mcp{pattern}"))]
    return [
        check
        for check in checks
        if check.group == wanted or any(text(check.code.casefold()) or text(check.name) for text in texts)
    ]


def _revisions(check: Check) -> str:
    if check.since and check.until:
        return check.since if check.since == check.until else f"{check.since} to {check.until}"
    if check.since or check.until:
        return f"since {check.since}" if check.since else f"until {check.until}"
    return "all"


def _meant(word: str, checks: list[Check]) -> Check | list[Check]:
    """The check with that code or name, or those of a family; raises UsageError if there is none."""
    wanted = word.casefold()
    for check in checks:
        if wanted in (check.code.casefold(), check.code.removeprefix("MCP"), check.name):
            return check
    if family := _family(wanted, checks):
        return family
    known = [check.code for check in checks] + [check.name for check in checks]
    by_fold = {name.casefold(): name for name in known}
    is_family = bool(set("*?") & set(wanted) or (_NUMBERED.fullmatch(wanted) and not wanted[-3:].isdecimal()))
    near = [] if is_family else get_close_matches(wanted, by_fold, n=1, cutoff=0.4)
    hint = f"; did you mean {by_fold[near[0]]}?" if near else "; `mcpsniff explain` lists them all"
    raise click.UsageError(f"there is no finding {word}{hint}", click.get_current_context())
