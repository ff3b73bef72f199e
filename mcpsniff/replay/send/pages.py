"""Lists that come in pages: what has only moved from one page to another is no difference."""

from typing import TYPE_CHECKING, Any, Final

from mcpsniff.protocol.message import RESPONSE
from mcpsniff.replay.compare import compare
from mcpsniff.replay.send.outcome import DIFFERS, SAME, UNCOMPARED, UNSENT, Outcome

if TYPE_CHECKING:
    from mcpsniff.replay.send.talk import Sender

LISTS: Final = {
    "tools/list": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "prompts/list": "prompts",
    "tasks/list": "tasks",
}
"""The methods with pages, and where the elements are (MCP pagination)."""


def regroup(sender: "Sender") -> None:
    """Take pages together where they differ: if all elements are there, it does not count on which page they are."""
    for method, member in LISTS.items():
        for pages in _runs(sender, method):
            if len(pages) > 1 and any(one.state == DIFFERS for one in pages) and _is_all_there(sender, pages, member):
                for one in pages:
                    _settle(one, member)


def _runs(sender: "Sender", method: str) -> list[list[Outcome]]:
    """The requests for pages of one list, from one without a cursor to the last before the next such."""
    runs: list[list[Outcome]] = []
    for scene, outcome in sender.outcomes.items():
        if scene.method != method or scene.cue is None:
            continue
        if scene.cue.params.get("cursor") is None or not runs:
            runs.append([])
        runs[-1].append(outcome)
    return runs


def _is_all_there(sender: "Sender", pages: list[Outcome], member: str) -> bool:
    """True if all pages were answered, or are not there any more, and their elements taken together are the same."""
    recorded: list[Any] = []
    live: list[Any] = []
    for one in pages:
        then, call = one.scene.answer, sender.calls.get(one.scene)
        now = None if call is None or call.answer is None else call.answer.message
        if then is None or then.kind != RESPONSE or (one.state != UNSENT and (now is None or now.kind != RESPONSE)):
            return False
        for found, message in ((recorded, then), (live, now)):
            elements = [] if message is None else message.result.get(member)
            if not isinstance(elements, list):
                return False
            found.extend(elements)
    return not compare({member: recorded}, {member: live}, sender.judge.rules, at=("result",))


def _settle(one: Outcome, member: str) -> None:
    if one.state == UNSENT:
        one.state, one.why = UNCOMPARED, f"the {member} are the same, on fewer pages"
        return
    moved = [each for each in one.differences if each.path[:2] in (("result", member), ("result", "nextCursor"))]
    if one.state != DIFFERS or not moved:
        return
    one.differences = [each for each in one.differences if each not in moved]
    one.notes.append(f"the {member} are the same, on other pages")
    if not one.differences and not one.said:
        one.state = SAME
