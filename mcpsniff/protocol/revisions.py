"""The published revisions of MCP and what each defines, as data.

Revisions are an enumerated list and are never compared as strings; a revision that is not in the list is unknown,
never "newer". A *legacy* revision opens with ``initialize``; a *modern* one carries its metadata in every request.
The tables come from the schema of each revision.
"""

from typing import Final, NamedTuple

R_2024_11_05: Final = "2024-11-05"
R_2025_03_26: Final = "2025-03-26"
R_2025_06_18: Final = "2025-06-18"
R_2025_11_25: Final = "2025-11-25"
R_2026_07_28: Final = "2026-07-28"

REVISIONS: Final = (R_2024_11_05, R_2025_03_26, R_2025_06_18, R_2025_11_25, R_2026_07_28)
LEGACY: Final = REVISIONS[:4]
MODERN: Final = REVISIONS[4:]

_POSITION: Final = {revision: position for position, revision in enumerate(REVISIONS)}


def is_published(revision: str | None) -> bool:
    """True if ``revision`` names a published revision."""
    return revision in _POSITION


def is_modern(revision: str | None) -> bool:
    """True if requests of this revision carry their own metadata; an unknown revision is not modern."""
    return revision in MODERN


def is_within(revision: str | None, since: str | None, until: str | None) -> bool:
    """True if ``revision`` lies between two published ones, both included; an unknown one lies between none."""
    if revision is None or revision not in _POSITION:
        return since in (None, REVISIONS[0]) and until is None
    position = _POSITION[revision]
    first = 0 if since is None else _POSITION[since]
    last = len(REVISIONS) - 1 if until is None else _POSITION[until]
    return first <= position <= last


class Method(NamedTuple):
    """A method as the schemas define it."""

    name: str
    direction: str
    """``c2s``, ``s2c`` or ``both``."""
    kind: str
    """``request`` or ``notification``."""
    since: str
    until: str | None = None
    target: str | None = None
    """The member of ``params`` that names what the call is about."""


def _table() -> dict[str, Method]:
    first, last_legacy = R_2024_11_05, R_2025_11_25
    rows = (
        Method("initialize", "c2s", "request", first, last_legacy),
        Method("notifications/initialized", "c2s", "notification", first, last_legacy),
        Method("ping", "both", "request", first, last_legacy),
        Method("server/discover", "c2s", "request", R_2026_07_28),
        Method("subscriptions/listen", "c2s", "request", R_2026_07_28),
        Method("notifications/subscriptions/acknowledged", "s2c", "notification", R_2026_07_28),
        Method("tools/list", "c2s", "request", first),
        Method("tools/call", "c2s", "request", first, target="name"),
        Method("notifications/tools/list_changed", "s2c", "notification", first),
        Method("resources/list", "c2s", "request", first),
        Method("resources/templates/list", "c2s", "request", first),
        Method("resources/read", "c2s", "request", first, target="uri"),
        Method("resources/subscribe", "c2s", "request", first, last_legacy, target="uri"),
        Method("resources/unsubscribe", "c2s", "request", first, last_legacy, target="uri"),
        Method("notifications/resources/updated", "s2c", "notification", first, target="uri"),
        Method("notifications/resources/list_changed", "s2c", "notification", first),
        Method("prompts/list", "c2s", "request", first),
        Method("prompts/get", "c2s", "request", first, target="name"),
        Method("notifications/prompts/list_changed", "s2c", "notification", first),
        Method("completion/complete", "c2s", "request", first, target="ref"),
        Method("logging/setLevel", "c2s", "request", first, last_legacy, target="level"),
        Method("notifications/message", "s2c", "notification", first, target="level"),
        Method("notifications/progress", "both", "notification", first, target="progressToken"),
        Method("notifications/cancelled", "both", "notification", first, target="requestId"),
        Method("roots/list", "s2c", "request", first, last_legacy),
        Method("notifications/roots/list_changed", "c2s", "notification", first, last_legacy),
        Method("sampling/createMessage", "s2c", "request", first, last_legacy),
        Method("elicitation/create", "s2c", "request", R_2025_06_18, last_legacy, target="mode"),
        Method("notifications/elicitation/complete", "s2c", "notification", last_legacy, last_legacy),
        Method("tasks/get", "both", "request", last_legacy, target="taskId"),
        Method("tasks/result", "both", "request", last_legacy, last_legacy, target="taskId"),
        Method("tasks/list", "both", "request", last_legacy, last_legacy),
        Method("tasks/cancel", "both", "request", last_legacy, target="taskId"),
        Method("tasks/update", "c2s", "request", R_2026_07_28, target="taskId"),
        Method("notifications/tasks/status", "both", "notification", last_legacy, last_legacy, target="taskId"),
        Method("notifications/tasks", "s2c", "notification", R_2026_07_28, target="taskId"),
    )
    return {row.name: row for row in rows}


METHODS: Final = _table()

META_PREFIX: Final = "io.modelcontextprotocol/"
PROTOCOL_VERSION_KEY: Final = META_PREFIX + "protocolVersion"
CLIENT_CAPABILITIES_KEY: Final = META_PREFIX + "clientCapabilities"
CLIENT_INFO_KEY: Final = META_PREFIX + "clientInfo"
SERVER_INFO_KEY: Final = META_PREFIX + "serverInfo"

RESERVED_META_KEYS: Final = frozenset(
    META_PREFIX + name
    for name in (
        "protocolVersion",
        "clientCapabilities",
        "clientInfo",
        "logLevel",
        "serverInfo",
        "subscriptionId",
        "related-task",
        "model-immediate-response",
    )
)
"""The keys that the specification defines under its own prefix."""
