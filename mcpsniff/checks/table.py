"""The registered checks as documentation: the table of docs/checks.md."""

from mcpsniff.checks import Check, load


def all_checks() -> list[Check]:
    """Every registered check, in the order of the codes."""
    return sorted(load().values(), key=lambda check: check.code)


def table_markdown() -> str:
    """One table per group, in Markdown: code, name, severity, revisions and the fault in one sentence."""
    groups: dict[str, list[Check]] = {}
    for check in all_checks():
        groups.setdefault(check.group, []).append(check)
    return "\n\n".join(_group(name, checks) for name, checks in groups.items()) + "\n"


def _group(name: str, checks: list[Check]) -> str:
    rows = [f"### {name}", "", "| code | name | severity | revisions | fault |", "|---|---|---|---|---|"]
    rows.extend(
        f"| {check.code} | `{check.name}` | {check.severity} | {_revisions(check)} | {_cell(check.summary)} |"
        for check in checks
    )
    return "\n".join(rows)


def _revisions(check: Check) -> str:
    if check.since and check.until:
        return f"{check.since} to {check.until}"
    return f"since {check.since}" if check.since else f"to {check.until}" if check.until else "all"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
