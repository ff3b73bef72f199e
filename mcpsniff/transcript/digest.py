"""A session in a few figures, as a list of captures shows it."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from mcpsniff.capture.content import tells
from mcpsniff.checks.recorder import damage_finding
from mcpsniff.decoder import Decoder
from mcpsniff.protocol.revisions import is_published
from mcpsniff.transcript.session import Source
from mcpsniff.transcript.summary import Summary
from mcpsniff.transcript.talks import Talks

LONGEST_NAME: Final = 200
"""Characters of a peer's name or version that are kept."""


class Digest(NamedTuple):
    """What a session comes to. Names and versions are as they were captured, at most LONGEST_NAME characters."""

    duration_us: int
    """From the start of the recording to the latest event."""
    messages: int
    errors: int
    """Calls that failed: answered with an error, with a result that says ``isError``, or refused by HTTP."""
    unanswered: int
    """Calls without an answer: cancelled, abandoned or still open."""
    findings: dict[str, int]
    """How many there are of each severity, worst first."""
    worst: tuple[str, str, str] | None
    """Code, name and severity of the finding that weighs most."""
    client: tuple[str, str] | None
    """Name and version; None when the session does not say."""
    server: tuple[str, str] | None
    revision: str | None
    """The first published one that governed it, else one that was named."""
    conversations: int = 1
    """Over HTTP there may be several; client, server and revision are those of the first one with a result."""
    empty: bool = False
    """It holds nothing but that a run began, see `mcpsniff.capture.content`."""
    origins: tuple[str, ...] = ()
    """Over HTTP: the servers with which MCP was spoken, at most `mcpsniff.transcript.servers.KNOWN`."""
    edits: int = 0
    """How often something was changed, or held, on the way."""
    edited_by: tuple[str, ...] = ()
    """Who did that, most often first, at most `mcpsniff.transcript.edit_counts.NAMES` and ``others``; captured text."""
    undelivered: int = 0
    """Calls that were answered, and whose answers were lost on the way: they are among those without one."""

    @classmethod
    def read(cls, value: Any) -> "Digest | None":
        """The digest that a list of its fields means, as JSON gives it back; None if it is none."""
        if not isinstance(value, list) or len(value) != len(cls._fields):
            return None
        duration_us, messages, errors, unanswered, findings, worst, client, server, revision, *rest = value
        conversations, empty, origins, edits, edited_by, undelivered = rest
        numbers = (
            duration_us,
            messages,
            errors,
            unanswered,
            conversations,
            edits,
            undelivered,
            *(findings.values() if isinstance(findings, dict) else ""),
        )
        if not (isinstance(findings, dict) and all(type(number) is int and number >= 0 for number in numbers)):
            return None
        if not (_texts(worst, 3) and _texts(client, 2) and _texts(server, 2)):
            return None
        if not (revision is None or isinstance(revision, str)) or type(empty) is not bool:
            return None
        if not all(isinstance(texts, list) and _is_text(*texts) for texts in (origins, edited_by)):
            return None
        return cls(
            duration_us,
            messages,
            errors,
            unanswered,
            findings,
            tuple(worst) if worst else None,
            tuple(client) if client else None,
            tuple(server) if server else None,
            revision,
            conversations,
            empty,
            tuple(origins),
            edits,
            tuple(edited_by),
            undelivered,
        )


def digest(source: Source) -> Digest:
    """Decode a capture and sum it up. Raises CaptureError as the source does."""
    decoder, summary, talks = Decoder(source.header, joined_late=source.joined_late), Summary(), Talks()
    revision = None
    told = False
    for record in source.records():
        told = told or tells(record)
        events = decoder.feed(record)
        summary.feed(events)
        talks.feed(events)
        if revision is None and is_published(decoder.conversation.revision):
            revision = decoder.conversation.revision
    conversation = decoder.conversation
    summary.feed(decoder.finish())
    summary.feed(damage_finding(0, k, summary.last_t, damage.text) for k, damage in enumerate(source.damage))
    faults = summary.worst_first()
    first = faults[0].first if faults else None
    return Digest(
        duration_us=summary.last_t,
        messages=sum(summary.messages.values()),
        errors=sum(calls.failed for calls in summary.methods.values()),
        unanswered=sum(calls.unanswered for calls in summary.methods.values()),
        findings=summary.severities(),
        worst=None if first is None else (first.code, first.name, first.severity),
        client=_peer(conversation.client_info),
        server=_peer(conversation.server_info),
        revision=revision or conversation.revision,
        conversations=max(talks.count, 1),
        empty=not (told or source.damage or source.joined_late),
        origins=tuple(talks.servers.spoken),
        edits=summary.edits.total,
        edited_by=tuple(name[:LONGEST_NAME] for name, _ in summary.edits.names()),
        undelivered=summary.undelivered,
    )


def _peer(info: Mapping[str, Any]) -> tuple[str, str] | None:
    name, version = (
        value[:LONGEST_NAME] if isinstance(value := info.get(key), str) else "" for key in ("name", "version")
    )
    return (name, version) if name or version else None


def _texts(value: Any, length: int) -> bool:
    """True for None and for a list of that many strings."""
    if value is None:
        return True
    return isinstance(value, list) and len(value) == length and _is_text(*value)


def _is_text(*values: Any) -> bool:
    return all(isinstance(value, str) for value in values)
