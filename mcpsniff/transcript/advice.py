"""What to do about a finding, in one sentence, where the check has advice for the one who is to blame."""

import re
from typing import Final

from mcpsniff.checks import CLIENT, REGISTRY, SERVER, SEVERITIES, Finding
from mcpsniff.transcript.safe import visible

SPEAKS_TO: Final = {
    "MCP101": SERVER,
    "MCP102": SERVER,
    "MCP103": SERVER,
    "MCP116": SERVER,
    "MCP117": SERVER,
    "MCP118": SERVER,
    "MCP119": SERVER,
    "MCP301": CLIENT,
    "MCP304": CLIENT,
    "MCP305": CLIENT,
    "MCP411": SERVER,
    "MCP412": CLIENT,
    "MCP603": SERVER,
}
"""Checks whose advice makes sense to one side only; that of the others is for whoever is to blame."""

GRADED_DOWN: Final = frozenset({"MCP409"})
"""Checks that grade down what is nobody's failure; their advice is for what they did not grade down."""

_SENTENCE_END: Final = re.compile(r"(?<=[.!?]) (?=[A-Z`])")
_RANK: Final = {severity: rank for rank, severity in enumerate(SEVERITIES)}


def what_to_do(finding: Finding) -> str:
    """What to do about a finding: its own sentence, or the first of its check's; the rest is for `mcpsniff explain`.

    Empty when the advice would reach the wrong one: it speaks to the other side, or nobody failed.
    """
    check = REGISTRY.get(finding.code)
    if check is None or not check.fix:
        return ""
    if SPEAKS_TO.get(finding.code, finding.blame) != finding.blame:
        return ""
    if finding.code in GRADED_DOWN and _RANK[finding.severity] > _RANK[check.severity]:
        return ""
    return visible(finding.fix or _SENTENCE_END.split(check.fix, maxsplit=1)[0].replace("``", ""))
