"""The faults there are, as data: names, values, the messages that they are meant for, and what they do."""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from mcpsniff.hooks.actions import Returned
from mcpsniff.protocol.message import ERROR, NOTIFICATION, REQUEST, RESPONSE, Message
from mcpsniff.proxy.faults import shapes, values

ANSWERS: Final = (RESPONSE, ERROR)
REQUESTS: Final = (REQUEST,)
ALL: Final = (REQUEST, NOTIFICATION, RESPONSE, ERROR)
_MEANT: Final = {ANSWERS: "answers", REQUESTS: "requests", ALL: "all messages"}

LATENCY: Final = "latency"
REORDER: Final = "reorder"
STATUS: Final = "status"
WRONG_ID: Final = "wrong-id"
ERROR_ANSWER: Final = "error"
NEED_AN_ID: Final = (WRONG_ID, ERROR_ANSWER)


class Kind(NamedTuple):
    """One kind of fault."""

    name: str
    value: str
    """What the help calls its value; empty: it takes none."""
    default: str
    read: Callable[[str], Any]
    """What a value means. Raises ValueError."""
    kinds: tuple[str, ...]
    """The messages that it is meant for, unless ``if=`` says a ``kind:``."""
    shape: Callable[[Message, Any, str], Returned] | None
    """What it makes of a message, given its value and why; None: it only takes time."""
    help: str

    @property
    def has_text(self) -> bool:
        """True if its value is a code and, after a colon, a text."""
        return self.value.endswith("[:TEXT]")

    def fits(self, message: Message, transport: str, value: Any = None) -> bool:
        """True if it can be done to this message at all, and makes it another one."""
        if self.name == STATUS:
            return message.direction == "c2s" and transport != "stdio"
        if self.name in NEED_AN_ID and message.key is None and "id" not in message.body:
            return False
        if self.name == WRONG_ID and "id" in message.body:
            return bool(shapes.other_id(message, value) != message.body["id"])
        if self.name == ERROR_ANSWER and message.kind == ERROR and value is not None:
            return bool(message.body.get("error") != shapes.error_of(value))
        return True


def _table() -> dict[str, Kind]:
    rows = (
        Kind(LATENCY, "TIME|TIME..TIME", "1s", values.times, ANSWERS, None, "is late by this, or by any between two"),
        Kind("drop", "", "", values.nothing, ALL, shapes.drop, "is lost"),
        Kind("duplicate", "", "", values.nothing, ALL, shapes.duplicate, "comes twice"),
        Kind(
            REORDER, "TIME", "200ms", values.time, ALL, shapes.reorder,
            "comes after the next one of its direction, or after this time if none comes",
        ),
        Kind(
            WRONG_ID, "type|other|null|none", "type", values.wrong_id, ANSWERS, shapes.wrong_id,
            "has an id of another type (1 is \"1\"), one that nobody has given, null, or none at all",
        ),
        Kind(
            ERROR_ANSWER, "CODE[:TEXT]", "-32603:Internal error", values.code, REQUESTS, shapes.error,
            "is answered with an error of JSON-RPC in the receiver's place; with if=kind:response the receiver does its"
            " work, and its answer becomes the error",
        ),
        Kind(
            "cut", "BYTES|PERCENT%", "50%", values.part, ANSWERS, shapes.cut,
            "ends in its middle: over HTTP its body or event stream breaks off there, and the connection with it;"
            " on a pipe the next line is glued to it",
        ),
        Kind(
            "half-line", "BYTES|PERCENT%", "50%", values.part, ANSWERS, shapes.half,
            "is half a line, half an event or half a body, ended properly: broken JSON in whole framing",
        ),
        Kind(
            "noise", "TEXT", "this is no JSON-RPC", values.words, ANSWERS, shapes.noise,
            "comes after something that is no message: a line on stdout, an event, the beginning of a body",
        ),
        Kind(
            "invalid-utf8", "", "", values.nothing, ANSWERS, shapes.invalid_utf8,
            "has bytes in a string that are no UTF-8",
        ),
        Kind(
            STATUS, "CODE[:TEXT]", "503", values.status, REQUESTS, shapes.status,
            "is refused by HTTP (400 to 599) in the server's place; TEXT is what Retry-After says (429 and 503: 1), or"
            " WWW-Authenticate (401)",
        ),
        Kind(
            "stall", "", "", values.nothing, ANSWERS, shapes.stall,
            "is lost, and so is all that follows in its pipe or stream, which does not end",
        ),
        Kind("slow", "BYTES", "100", values.rate, ANSWERS, shapes.slow, "comes at so many bytes per second"),
        Kind(
            "disconnect", "", "", values.nothing, ANSWERS, shapes.disconnect,
            "is lost, since its connection breaks off; on pipes the pipe ends",
        ),
    )  # fmt: skip
    return {row.name: row for row in rows}


KINDS: Final = _table()


def meant(kind: Kind) -> str:
    """The messages that a fault is meant for, in words."""
    return _MEANT[kind.kinds]


def listed() -> str:
    """All faults as lines of text, for a terminal."""
    lines = []
    for kind in KINDS.values():
        value = f"={kind.value}" if kind.value else ""
        lines += [f"{kind.name}{value}", f"    {kind.help}"]
        lines.append(f"    of {meant(kind)}" + (f", default {kind.default}" if kind.value else ""))
    return "\n".join(lines)


def table_markdown() -> str:
    """All faults as a table."""
    lines = ["| fault | value (default) | a message of these | what becomes of it |", "|---|---|---|---|"]
    for kind in KINDS.values():
        value = f"`{kind.value}` (`{kind.default}`)".replace("|", "\\|") if kind.value else ""
        lines.append(f"| `{kind.name}` | {value} | {meant(kind)} | {kind.help} |")
    return "\n".join(lines)
