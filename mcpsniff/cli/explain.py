"""`mcpsniff explain CODE`: what a finding means, why it matters, what to do."""

from difflib import get_close_matches

import click

from mcpsniff.checks import REGISTRY, SEVERITIES, Check, load
from mcpsniff.transcript.layout import wrapped

WIDTH = 88


@click.command("explain")
@click.argument("code", required=False)
def command(code: str | None) -> None:
    """Explain a finding: what is wrong, why it matters, what to do.

    CODE is a code (MCP101) or a name (stdio-not-json). Without one, all codes are listed.
    """
    load()
    checks = sorted(REGISTRY.values(), key=lambda check: check.code)
    if code is None:
        widest = max(len(check.name) for check in checks)
        for check in checks:
            click.echo(f"{check.code}  {check.name:<{widest}}  {check.severity:<7}  {check.summary}")
        return
    click.echo("\n".join(page(_meant(code, checks))))


def page(check: Check) -> list[str]:
    """The lines that explain a check."""
    lines = [f"{check.code} {check.name}", ""]
    lines.append(f"  severity   {check.severity}: {SEVERITIES[check.severity]}")
    lines.append(f"  group      {check.group}")
    lines.append(f"  revisions  {_revisions(check)}")
    if check.blame:
        lines.append(f"  blame      {check.blame}")
    if check.spec:
        lines.append(f"  source     {check.spec}")
    for paragraph in check.doc.split("\n\n"):
        lines.append("")
        lines += wrapped(" ".join(paragraph.split()).replace("``", ""), WIDTH)
    return lines


def _revisions(check: Check) -> str:
    if check.since and check.until:
        return check.since if check.since == check.until else f"{check.since} to {check.until}"
    if check.since or check.until:
        return f"since {check.since}" if check.since else f"until {check.until}"
    return "all"


def _meant(word: str, checks: list[Check]) -> Check:
    wanted = word.casefold()
    for check in checks:
        if wanted in (check.code.casefold(), check.code.removeprefix("MCP"), check.name):
            return check
    known = [check.code for check in checks] + [check.name for check in checks]
    by_fold = {name.casefold(): name for name in known}
    near = get_close_matches(wanted, by_fold, n=1, cutoff=0.4)
    hint = f"; did you mean {by_fold[near[0]]}?" if near else "; `mcpsniff explain` lists them all"
    raise click.UsageError(f"there is no finding {word}{hint}", click.get_current_context())
