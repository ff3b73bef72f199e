"""The head of a transcript: what was recorded and when, who talked, what the two sides agreed on and can do."""

import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from mcpsniff.capture.records import Header
from mcpsniff.protocol.conversation import CLOSED, HANDSHAKE, LEGACY_ERA, MODERN_ERA, UNKNOWN, Conversation
from mcpsniff.protocol.revisions import is_published
from mcpsniff.transcript.servers import listed, route
from mcpsniff.transcript.talks import STATES, Talks, peer
from mcpsniff.transcript.units import count

LONGEST_COMMAND: Final = 1000
EDITORS_NAMED: Final = 8
ONE_ALONE: Final = "--filter conversation:2 shows only what is marked [2]"


class Entry(NamedTuple):
    """One line of the head. ``value`` is captured text, ``remark`` is our own."""

    name: str
    value: str
    remark: str = ""
    lines: int | None = None
    """How many lines the value may take; None: as many as it needs."""
    is_path: bool = False
    """A path is for copying: it is never broken into lines."""
    is_learnt: bool = False
    """True if it was told by what was said, not by the capture's first line."""


def way(header: Header) -> str:
    """The transport in a word; captured text, empty if the header has none.

    ``forward`` is what `mcpsniff run` and `mcpsniff forward` record, which the header does not tell apart. How another
    program got hold of what was imported is not known.
    """
    if header.imported:
        return "http" if header.transport else ""
    return "proxy" if header.transport == "forward" else header.transport or ""


def without_hint(entries: Iterable[Entry], fields: Collection[str]) -> list[Entry]:
    """The lines of the head without the hint how to see one conversation, where a filter asks about that already.

    ``fields`` are those that it asks about.
    """
    return [entry for entry in entries if entry.remark != ONE_ALONE or "conversation" not in fields]


def is_settled(conversation: Conversation) -> bool:
    """True once the opening is over and the head will say all that it ever will."""
    if conversation.era == MODERN_ERA:  # there the server is known by an answer, usually that to server/discover
        return conversation.server_capabilities is not None or bool(conversation.server_info)
    return conversation.state not in (CLOSED, HANDSHAKE, UNKNOWN) or conversation.initialize_answered


def head(
    header: Header,
    conversation: Conversation,
    path: str,
    talks: Talks | None = None,
    parts: int = 1,
    *,
    editors: Sequence[str] = (),
) -> list[Entry]:
    """The lines of the head. Every value may hold hostile text.

    ``talks`` are the conversations over HTTP so far, ``parts`` how many files the capture has, ``editors`` who changed
    something on the way.
    """
    entries = [
        Entry("started", header.started.replace("T", " ").removesuffix("Z")[:23], "UTC"),
        Entry("capture", path, f"in {parts} parts" if parts > 1 else "", is_path=True),
    ]
    if header.redacted is not None:
        entries.append(Entry("redacted", _redacted(header.redacted), "for sharing: not what was said"))
    if editors:
        entries.append(
            Entry("edited by", listed(editors, EDITORS_NAMED), "what left is shown beside what came", lines=3)
        )
    if header.argv:
        entries.append(Entry("command", shlex.join(header.argv)[:LONGEST_COMMAND]))
    if header.cwd:
        entries.append(Entry("folder", header.cwd))
    entries.extend(_transport(header, talks))
    if talks is not None and talks.count > 1:
        entries.extend(_conversations(talks))
    else:
        entries.extend(_conversation(conversation))
    if conversation.joined_late:
        entries.append(Entry("note", "", "the beginning of this session is not in the capture"))
    return entries


def _redacted(told: Mapping[str, Any]) -> str:
    """``3 values at 7 places (2 email, 1 token)``, as far as the header tells; captured text."""
    values, places, kinds = told.get("values"), told.get("places"), told.get("kinds")
    words = [count(number, noun) for number, noun in ((values, "value"), (places, "place")) if isinstance(number, int)]
    by_kind = [f"{number} {kind}" for kind, number in kinds.items()][:20] if isinstance(kinds, dict) else []
    return " at ".join(words) + (f" ({', '.join(by_kind)})" if by_kind else "")


def _transport(header: Header, talks: Talks | None) -> Iterator[Entry]:
    if header.imported:
        yield Entry("imported", header.imported, is_path=True)
    if header.kept_by:
        yield Entry("kept by", header.kept_by, lines=1)
    if header.transport:
        known = [] if talks is None else [_flavour(talk.conversation) for talk in talks.named.values()]
        yield Entry("transport", way(header), " and ".join(dict.fromkeys(filter(None, known))))
    spoken = [] if talks is None or header.upstream else talks.servers.spoken
    ends = [end for end in (header.listen, header.upstream or route(spoken)) if end]
    if ends:
        yield Entry("route", " → ".join(ends), is_learnt=bool(spoken))
    if talks is not None and spoken and talks.servers.besides:
        yield Entry("also asked", listed(talks.servers.besides), is_learnt=True)


def _flavour(conversation: Conversation) -> str:
    """Which of the two HTTP transports a conversation has shown to be on; empty while it may be either."""
    if conversation.endpoint is not None:
        return "HTTP+SSE"
    is_answered = conversation.initialize_answered or conversation.session_id is not None
    return "Streamable HTTP" if is_answered or conversation.era == MODERN_ERA else ""


def _conversation(conversation: Conversation) -> Iterator[Entry]:
    yield Entry("client", *_peer(conversation.client_info))
    yield Entry("server", *_peer(conversation.server_info))
    yield from _revision(conversation)
    if conversation.over_http and conversation.era == LEGACY_ERA:
        name = conversation.session_id or conversation.endpoint
        state = STATES.get(conversation.state, conversation.state)
        # A head is printed as soon as it is known who talks: that the opening then goes on says nothing.
        remark = "" if name and conversation.state == HANDSHAKE else state
        yield Entry("session", name or "", remark if name else f"without a session id, {state}")
    yield Entry("client can", *_capabilities(conversation.client_capabilities))
    yield Entry("server can", *_capabilities(conversation.server_capabilities))
    if conversation.instructions:
        yield Entry("instructions", " ".join(conversation.instructions[:LONGEST_COMMAND].split()), lines=2)


def _conversations(talks: Talks) -> Iterator[Entry]:
    """One line for each of several conversations."""
    for talk in talks.named.values():
        known = talk.conversation
        told = talk.told()
        can = [
            f"{who} can {shown}"
            for who, capabilities in (("client", known.client_capabilities), ("server", known.server_capabilities))
            if (shown := _capabilities(capabilities)[0])
        ]
        for names in talks.names(talk):
            yield Entry("conversation", " · ".join([f"{talk.number}: {names}", *filter(None, (told,)), *can]), lines=3)
            can = []
    if talks.count > len(talks.named):
        yield Entry("", "", f"and {count(talks.count - len(talks.named), 'more conversation')}")
    yield Entry("", "", ONE_ALONE)


def _peer(info: Mapping[str, Any]) -> tuple[str, str]:
    return peer(info), "" if peer(info) else "unknown"


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
