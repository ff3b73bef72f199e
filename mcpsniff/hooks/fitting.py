"""What the revision in force asks of the messages that hooks make, filled in where they lack it.

Since 2026-07-28 each result says its ``resultType``, those that may be cached also for how long and by whom, and each
request of a client brings the envelope that `initialize` was for (basic and caching chapters of that revision).
Nothing that a hook has given is touched, and no error.
"""

from collections.abc import Mapping
from typing import Any, Final

from mcpsniff.protocol.exchange import Exchange
from mcpsniff.protocol.message import REQUEST, RESPONSE, Message
from mcpsniff.protocol.revisions import CLIENT_CAPABILITIES_KEY, CLIENT_INFO_KEY, PROTOCOL_VERSION_KEY, is_modern

CACHED: Final = frozenset(
    (
        "server/discover",
        "tools/list",
        "prompts/list",
        "resources/list",
        "resources/templates/list",
        "resources/read",
    )
)
"""Methods whose results say how they may be cached."""
UNCACHED: Final = {"ttlMs": 0, "cacheScope": "private"}
"""A made answer holds for the request that it answers, and for nobody else."""
ENVELOPE: Final = (PROTOCOL_VERSION_KEY, CLIENT_INFO_KEY, CLIENT_CAPABILITIES_KEY)


def revision_of(message: Message) -> str | None:
    """The revision that a request names itself; None before 2026-07-28."""
    revision = message.meta.get(PROTOCOL_VERSION_KEY)
    return revision if isinstance(revision, str) else None


def envelope_of(message: Message) -> dict[str, Any]:
    """What a client's request says of the client, if it names its revision; empty if not."""
    if not is_modern(revision_of(message)):
        return {}
    return {name: message.meta[name] for name in ENVELOPE if name in message.meta}


def fit(message: Message, direction: str, asked: Exchange | None, envelope: Mapping[str, Any]) -> None:
    """Complete a message that a hook has made.

    ``asked`` is the request that it answers, if any; ``envelope`` that of the latest request of the client.
    """
    body = message.body
    if not isinstance(body, dict):
        return
    if message.kind == RESPONSE and asked is not None and is_modern(asked.revision):
        _complete(body.get("result"), asked.method)
    elif message.kind == REQUEST and direction == "c2s" and envelope and message.method != "initialize":
        _enclose(body, envelope)


def _complete(result: Any, method: str) -> None:
    if not isinstance(result, dict):
        return
    result.setdefault("resultType", "complete")
    if result["resultType"] == "complete" and method in CACHED:
        for name, value in UNCACHED.items():
            result.setdefault(name, value)


def _enclose(body: dict[str, Any], envelope: Mapping[str, Any]) -> None:
    params = body.setdefault("params", {})
    meta = params.setdefault("_meta", {}) if isinstance(params, dict) else None
    if isinstance(meta, dict) and PROTOCOL_VERSION_KEY not in meta:
        for name, value in envelope.items():
            meta.setdefault(name, value)
