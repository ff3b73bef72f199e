"""The head of a transcript: what was recorded and when, who talked, what the two sides agreed on and can do."""

import shlex
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from mcpsniff.capture.records import Header
from mcpsniff.protocol.conversation import CLOSED, HANDSHAKE, MODERN_ERA, UNKNOWN, Conversation
from mcpsniff.protocol.revisions import is_published

LONGEST_COMMAND: Final = 1000


class Entry(NamedTuple):
    """One line of the head. ``value`` is captured text, ``remark`` is our own."""

    name: str
    value: str
    remark: str = ""
    lines: int | None = None
    """How many lines the value may take; None: as many as it needs."""
    is_path: bool = False
    """A path is for copying: it is never broken into lines."""


def is_settled(conversation: Conversation) -> bool:
    """True once the opening is over and the head will say all that it ever will."""
    if conversation.era == MODERN_ERA:  # there the server is known by an answer, usually that to server/discover
        return conversation.server_capabilities is not None or bool(conversation.server_info)
    return conversation.state not in (CLOSED, HANDSHAKE, UNKNOWN) or conversation.initialize_answered


def head(header: Header, conversation: Conversation, path: str) -> list[Entry]:
    """The lines of the head. Every value may hold hostile text."""
    entries = [
        Entry("started", header.started.replace("T", " ").removesuffix("Z")[:23], "UTC"),
        Entry("capture", path, is_path=True),
    ]
    if header.argv:
        entries.append(Entry("command", shlex.join(header.argv)[:LONGEST_COMMAND]))
    if header.cwd:
        entries.append(Entry("folder", header.cwd))
    if header.transport:
        entries.append(Entry("transport", header.transport))
    entries.append(Entry("client", *_peer(conversation.client_info)))
    entries.append(Entry("server", *_peer(conversation.server_info)))
    entries.extend(_revision(conversation))
    entries.append(Entry("client can", *_capabilities(conversation.client_capabilities)))
    entries.append(Entry("server can", *_capabilities(conversation.server_capabilities)))
    if conversation.instructions:
        entries.append(Entry("instructions", " ".join(conversation.instructions[:LONGEST_COMMAND].split()), lines=2))
    if conversation.joined_late:
        entries.append(Entry("note", "", "the beginning of this session is not in the capture"))
    return entries


def _peer(info: Mapping[str, Any]) -> tuple[str, str]:
    names = [info[key] for key in ("name", "version") if isinstance(info.get(key), str)]
    title = info.get("title")
    remark = "" if names else "unknown"
    if isinstance(title, str) and title and title not in names:
        names.append(f"({title})")
    return " ".join(names), remark


def _revision(conversation: Conversation) -> list[Entry]:
    revision, asked = conversation.revision, conversation.requested_revision
    if revision is None:
        if asked is None:
            return [Entry("revision", "", "never negotiated")]
        return [Entry("revision", asked, "asked for by the client, not agreed on")]
    remark = "" if is_published(revision) else "not a published revision"
    if not remark and conversation.era == MODERN_ERA:
        remark = "named in every request"
    entries = [Entry("revision", revision, remark)]
    if asked is not None and asked != revision and conversation.era != MODERN_ERA:
        entries.append(Entry("asked for", asked, "what the client proposed"))
    return entries


def _capabilities(capabilities: Mapping[str, Any] | None) -> tuple[str, str]:
    """``tools (listChanged), logging``: the names, with the flags that are on."""
    if capabilities is None:
        return "", "unknown"
    shown = []
    for name, value in list(capabilities.items())[:40]:
        inner = [
            key if flag is True else f"{key} {{…}}" if flag else key
            for key, flag in (value.items() if isinstance(value, dict) else ())
            if flag is not False
        ]
        shown.append(f"{name} ({', '.join(inner[:20])})" if inner else name)
    return ", ".join(shown), "" if shown else "nothing declared"
