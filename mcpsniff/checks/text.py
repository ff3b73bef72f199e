"""Checks of a message's text: its encoding, and JSON that readers understand differently."""

import json
from typing import Final

from mcpsniff.checks import CLIENT, ERROR, FRAMING, INFO, SERVER, WARNING, Hit, Verdict, check
from mcpsniff.checks.words import call, identity, listed, plain, quoted, subject
from mcpsniff.protocol.conversation import Conversation
from mcpsniff.protocol.events import Stderr
from mcpsniff.protocol.message import Message
from mcpsniff.protocol.outline import outline
from mcpsniff.protocol.reading import (
    DUPLICATE_KEY,
    LONE_SURROGATE,
    MAX_DEPTH,
    MAX_SAFE_INTEGER,
    NAN_OR_INFINITY,
    NOT_UTF8,
    NUMBER_OVERFLOW,
    TOO_DEEP,
    UNSAFE_INTEGER,
)
from mcpsniff.wire.frames import BOM, GAP, INVALID_UTF8

READ_AGAIN: Final = 1024 * 1024
"""Bytes of a message that are read a second time to name the place of a fault."""


@check(
    "MCP108",
    "bytes-not-utf8",
    on=Message,
    when=(INVALID_UTF8, NOT_UTF8),
    severity=ERROR,
    group=FRAMING,
    spec="basic/transports",
    in_part=True,
)
def bytes_not_utf8(message: Message, _: Conversation) -> Verdict:
    """A message is not UTF-8.

    MCP messages are UTF-8 (written down since 2025-03-26, and the only encoding of JSON between systems). One bad byte
    on stdout ends the whole Python stdio client; other peers put replacement characters in its place, so data is lost.

    Fix: Encode messages as UTF-8 explicitly (``PYTHONUTF8=1``, ``sys.stdout.buffer``), and decode what comes from
    files or other programs before it goes into a message. Binary data belongs into base64.
    """
    if GAP in message.flaws:
        return None  # the hole may have torn a character
    try:
        message.raw.decode()
    except UnicodeDecodeError as error:
        return f"byte 0x{message.raw[error.start]:02x} at place {error.start} of the message is not UTF-8"
    return "the message is not UTF-8 but looks like UTF-16 or UTF-32"


@check(
    "MCP109",
    "bytes-bom",
    on=Message,
    when=(BOM,),
    severity=ERROR,
    group=FRAMING,
    spec="rfc8259#section-8.1",
    in_part=True,
)
def bytes_bom(message: Message, _: Conversation) -> Verdict:
    """A byte order mark stands before a message.

    RFC 8259 forbids it to senders. No SDK tried reads such a message: some close the stream, the others drop it and
    the caller waits for its time-out. It comes from Windows tools and from writers set to ``utf-8-sig``.

    Fix: Write plain UTF-8 without a mark (in Python ``utf-8``, not ``utf-8-sig``).
    """
    return None if GAP in message.flaws else "the message begins with the bytes EF BB BF, a byte order mark"


@check(
    "MCP110",
    "json-duplicate-key",
    on=Message,
    when=(DUPLICATE_KEY, "overridden-id"),
    severity=WARNING,
    group=FRAMING,
    spec="rfc8259#section-4",
)
def json_duplicate_key(message: Message, _: Conversation) -> Verdict:
    """An object names a member twice.

    The last value counts in all four SDKs, the first one in other readers, so what a gateway inspects need not be what
    the server executes. Here, too, the last one was used.

    Fix: Build messages as objects and serialise them once, rather than joining text.
    """
    if _is_element(message):
        return None
    if message.link is not None and message.fact("overridden-id") is not None:
        text = f"the response has {identity(message.id)} and answers {call(message.link)}, which names both ids"
        return Hit(text, blame=CLIENT if message.link.direction == "c2s" else SERVER)
    paths = outline(message.raw[:READ_AGAIN].decode(errors="replace")).duplicates
    where = listed([plain(path, 50) for path in dict.fromkeys(paths)]) if paths else "a member"
    return f"{where} is there more than once; the last value was used"


@check(
    "MCP111",
    "json-nonfinite",
    on=Message,
    when=(NAN_OR_INFINITY,),
    severity=ERROR,
    group=FRAMING,
    spec="rfc8259#section-6",
)
def json_nonfinite(message: Message, _: Conversation) -> Verdict:
    """NaN or Infinity stands in a message; neither is JSON.

    The Python SDK servers accept it, the TypeScript ones drop the whole message without a word, and so does every
    strict parser in between.

    Fix: Replace such numbers by null or a string before serialising (``json.dumps(..., allow_nan=False)`` finds them).
    """
    if _is_element(message):
        return None
    words: dict[str, None] = {}
    if len(message.raw) <= READ_AGAIN:
        text = message.raw.decode(errors="replace").removeprefix("\ufeff")
        json.loads(text, parse_constant=words.setdefault)
    return f"{listed(list(words)) if words else 'NaN or Infinity'} in a message: strict readers drop all of it"


@check(
    "MCP112",
    "json-unsafe-integer",
    on=Message,
    when=(UNSAFE_INTEGER, NUMBER_OVERFLOW),
    severity=WARNING,
    group=FRAMING,
    spec="rfc8259#section-6",
)
def json_unsafe_integer(message: Message, _: Conversation) -> Verdict:
    """A number is beyond what readers agree on: an integer past 2^53-1, or one past the range of a double.

    JavaScript and many other readers hold numbers as doubles and deliver 9007199254740992 for ...993. As an id it
    breaks pairing: the TypeScript servers do not answer such a request at all.

    Fix: Send large numbers as strings, and count ids from 0 or 1.
    """
    if _is_element(message):
        return None
    number = _first_large_number(message.raw)
    if UNSAFE_INTEGER not in message.flaws:
        return f"{number or 'a number'} lies beyond the range of a double"
    text = f"{number or 'an integer'} lies beyond 2^53-1, where doubles lose digits"
    is_id = message.id is not None and number is not None and message.id == number
    return f"{text}, and it is the message's id" if is_id else text


class _FoundError(Exception):
    """Ends a reading at the number that was looked for."""


def _first_large_number(raw: bytes) -> str | None:
    """The first number that is beyond integers or doubles, as it is spelt; None if it is far into the message."""

    def integer(digits: str) -> int:
        if len(digits) > 17 or abs(int(digits)) > MAX_SAFE_INTEGER:
            raise _FoundError(digits)
        return 0

    def fraction(digits: str) -> float:
        if float(digits) in (float("inf"), float("-inf")):
            raise _FoundError(digits)
        return 0.0

    if len(raw) > READ_AGAIN:
        return None
    try:
        json.loads(raw.decode(errors="replace").removeprefix("\ufeff"), parse_int=integer, parse_float=fraction)
    except _FoundError as found:
        return plain(str(found), 40)
    except (ValueError, RecursionError):
        pass
    return None


@check(
    "MCP113",
    "json-lone-surrogate",
    on=Message,
    when=(LONE_SURROGATE,),
    severity=WARNING,
    group=FRAMING,
    spec="rfc8259#section-8.2",
)
def json_lone_surrogate(message: Message, _: Conversation) -> Verdict:
    """An escape names half of a surrogate pair, which is no character.

    Readers differ: the Python 1.x server answers with a parse error, the 2.x server says nothing, the TypeScript ones
    pass it on. It comes from text that was cut by UTF-16 units in the middle of an emoji.

    Fix: Cut text by code points, or repair it before serialising (``toWellFormed()`` in JavaScript).
    """
    if _is_element(message):
        return None
    return f"a \\u escape names half of a surrogate pair in the {subject(message)}; readers differ on what that means"


@check(
    "MCP115",
    "json-too-deep",
    on=Message,
    when=(TOO_DEEP,),
    severity=WARNING,
    group=FRAMING,
    spec="rfc8259#section-9",
    in_part=True,
)
def json_too_deep(message: Message, _: Conversation) -> Verdict:
    """A message is nested deeper than parsers follow.

    There is no limit in the protocol, but there is one in every parser: connections have ended at depth 126, processes
    at about 200, and stacks overflow at some thousands.

    Fix: Flatten the data, or send it as text or as a resource.
    """
    if _is_element(message):
        return None
    return f"the {subject(message)} is nested deeper than {MAX_DEPTH}; what lies deeper was not analysed"


@check(
    "MCP116",
    "stderr-not-utf8",
    on=Stderr,
    when=(INVALID_UTF8,),
    severity=INFO,
    group=FRAMING,
    spec="basic/transports#stdio",
)
def stderr_not_utf8(line: Stderr, conversation: Conversation) -> Verdict:
    """A line on stderr is not UTF-8 (told once per session).

    stderr may hold any text, as UTF-8. Clients that log it show replacement characters, and some stop reading.

    Fix: Set the program's output encoding to UTF-8 (``PYTHONIOENCODING=utf-8``, a UTF-8 locale).
    """
    if (line.channel, INVALID_UTF8) in conversation.frame_flaws:
        return None
    return Hit(f"stderr holds bytes that are not UTF-8: {quoted(line.text)}")


def _is_element(message: Message) -> bool:
    """True for an element of a batch: the flaws of its text are those of the batch, which is judged as a whole."""
    return message.batch is not None
