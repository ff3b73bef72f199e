"""What a transcript says about a message besides what stands in it: whom it answers, how it ended, what it cancels."""

from collections.abc import Mapping
from typing import Any, Final

from mcpsniff.checks.recorder import SOURCE, WHY_MISSING
from mcpsniff.protocol.events import Note
from mcpsniff.protocol.exchanges import Exchange
from mcpsniff.protocol.message import BATCH, ERROR, INVALID, Message
from mcpsniff.protocol.reading import NOT_JSON
from mcpsniff.transcript.units import count, size

_ODD_ANSWERS: Final = {
    "answer-after-cancel": "after the cancel",
    "answered-twice": "answered once more",
    "id-type-differs": "id of another type",
    "wrong-side": "answers its own side's request",
    "unknown-id": "nobody asked",
    "uncorrelated": "to no request in particular",
    "notification-answered": "answers a notification",
    "ambiguous": "two open requests have this id",
}


def answer_words(message: Message, link: Exchange | None) -> tuple[tuple[str, ...], str]:
    """What to say of an answer, and the peer's own words where it is an error."""
    words = []
    if link is not None:
        words.append(f"{link.state if link.response == message.n else 'answers'} #{link.request}")
    if message.kind == ERROR:
        code = message.error.get("code")
        words.append(f"error {code}" if isinstance(code, int) and not isinstance(code, bool) else "error")
    elif message.kind == INVALID:
        words.append("malformed")
    elif message.result.get("isError") is True:
        words.append("tool error")
    words.extend(_ODD_ANSWERS[fact.name] for fact in message.facts if fact.name in _ODD_ANSWERS)
    return tuple(words), _text(message.error.get("message"))


def notification_words(message: Message) -> tuple[str | None, tuple[str, ...], str]:
    """Target, words and remark of a notification."""
    params = message.params
    if message.method == "notifications/progress":
        words = [_share(params)]
        if message.link is not None:
            words.append(f"of #{message.link.request}")
        if message.fact("progress-after-end") is not None:
            words.append("after its end")
        if message.fact("progress-unknown-token") is not None:
            words.append("of no known request")
        return _short(params.get("progressToken")), tuple(word for word in words if word), _text(params.get("message"))
    if message.method == "notifications/cancelled":
        link = message.link
        if link is None:
            words = ["cancels nothing known"]
        elif link.cancel == message.n:
            words = [f"cancelled #{link.request}"]
        elif link.gave_up == message.t and link.undelivered is not None:
            words = [f"gives up on #{link.request}, whose answer did not arrive"]
        else:
            words = [f"too late for #{link.request}"]
        return _short(params.get("requestId")), tuple(words), _text(params.get("reason"))
    for name in ("level", "uri", "taskId"):
        if name in params:
            return _short(params[name]), (), ""
    return None, (), ""


def noise_words(message: Message) -> tuple[str, tuple[str, ...]]:
    """Title and words of what is neither a call nor an answer."""
    if message.kind == BATCH:
        return "batch", (f"of {len(message.body)}",)
    if message.batch is not None:
        return "not a message", (f"in batch #{message.batch}",)
    return ("not JSON" if NOT_JSON in message.flaws else "not a message"), ()


def note_words(note: Note) -> tuple[str, str]:
    """Title and remark of a recorder's or a person's note."""
    fields = note.fields
    where = "" if note.channel is None else f" on channel {note.channel}"
    if note.kind == "gap":
        lost, why = fields.get("bytes"), _text(fields.get("why"))
        much = size(lost) if isinstance(lost, int) and lost > 0 else ""
        what = f"{much or 'something'} of {note.where}" if note.where else f"{much or 'something'}{where}"
        if why == SOURCE and note.where:
            what = note.where  # all of it
        return f"{what} is missing from this capture", WHY_MISSING.get(why, why)
    if note.kind == "comment":
        return f"remark{where}", _text(fields.get("text"))
    length = fields.get("length")
    much = count(length, "byte") if isinstance(length, int) else "bytes"
    if note.kind == "rewrite":
        return f"{much}{where} were replaced on the way by", _text(fields.get("by"))
    return f"{note.kind}{where}", ""


def _share(params: Mapping[str, Any]) -> str:
    """``3 of 10``, as far as the progress says so."""
    done, total = params.get("progress"), params.get("total")
    return " of ".join(part for part in (_number(done), _number(total)) if part)


def _number(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return ""
    return f"{value:g}" if isinstance(value, float) else str(value)


def _short(value: Any) -> str | None:
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
