"""Checks of framing on pipes: one JSON-RPC message per line, and nothing else."""

import json
from typing import Final

from mcpsniff.checks import ERROR, FRAMING, NOTE, WARNING, Hit, Verdict, check
from mcpsniff.checks.words import quoted, size
from mcpsniff.protocol.conversation import Conversation
from mcpsniff.protocol.message import INVALID, Message
from mcpsniff.protocol.reading import TRAILING_DATA
from mcpsniff.wire.frames import (
    BARE_CR,
    CR_BEFORE_LF,
    EMPTY_LINE,
    UNTERMINATED,
    Frame,
)

STDIO: Final = "basic/transports#stdio"
MIB: Final = 1024 * 1024
LIMITS: Final = {
    ("line", "c2s"): (10 * MIB, "the TypeScript SDK closes the connection"),
    ("line", "s2c"): (10 * MIB, "the TypeScript SDK closes the connection"),
    ("body", "c2s"): (4 * MIB, "SDK servers answer 413"),
    ("sse", "s2c"): (MIB, "the Python SDK 2.x client gives up the stream"),
}
"""Bytes of a message that peers take, by framing and direction, and what they do beyond."""

_JSON: Final = json.JSONDecoder()


@check(
    "MCP101",
    "stdio-not-json",
    on=Message,
    when=("not-json",),
    framing="line",
    severity=ERROR,
    group=FRAMING,
    spec=STDIO,
)
def stdio_not_json(message: Message, _: Conversation) -> Verdict:
    """A line is not JSON, so it cannot be an MCP message.

    stdin and stdout belong to the protocol alone. Lenient clients log such a line and skip it, strict ones stop, and
    if it stands in the way of an answer the caller waits for its time-out. The usual cause is text on stdout: a banner,
    a print for debugging, the package runner in front of the server.

    Fix: Send everything that is not a message to stderr. In Python configure logging for stderr and print with
    ``file=sys.stderr``; in Node use ``console.error``. A line that begins like a message was cut or written by two
    writers at once.
    """
    if message.fact("part-of-a-split-message") is not None:
        return None
    begins_as_message = message.raw.lstrip()[:1] == b"{"
    if begins_as_message and (UNTERMINATED in message.flaws or objects_on(message) > 1):
        return None
    if message.batch is not None:
        return f"an element of the batch is not JSON: {quoted(message.raw)}"
    if begins_as_message:
        return f"a line begins like a message and is not JSON: {quoted(message.raw)}"
    if message.direction == "s2c":
        return f"the server wrote text to stdout, which is for messages only: {quoted(message.raw)}"
    return f"the client wrote a line that is not JSON: {quoted(message.raw)}"


@check(
    "MCP102",
    "stdio-not-object",
    on=Message,
    when=("not-an-object",),
    framing="line",
    severity=ERROR,
    group=FRAMING,
    spec=STDIO,
)
def stdio_not_object(message: Message, _: Conversation) -> Verdict:
    """A line is JSON and still no message: neither an object nor an array.

    A message is a JSON object (in 2025-03-26 also an array of them). A number or a string on its own is as a rule
    output of a program that happens to be valid JSON. Receivers drop it.

    Fix: Send text that is not a message to stderr.
    """
    if message.fact("part-of-a-split-message") is not None:
        return None
    where = "a line" if message.batch is None else "an element of the batch"
    return f"{where} is JSON but not an object: {quoted(message.raw)}"


@check(
    "MCP103",
    "stdio-empty-line",
    on=Frame,
    when=(EMPTY_LINE,),
    framing="line",
    severity=WARNING,
    group=FRAMING,
    spec=STDIO,
)
def stdio_empty_line(frame: Frame, _: Conversation) -> Verdict:
    """A line holds nothing but white space.

    Every line is to be a message. Most receivers skip an empty one or log a parse error for it; it often comes from a
    print without arguments, or from a message that is followed by one line feed too many.

    Fix: Write exactly one LF after each message and send everything else to stderr.
    """
    return "an empty line stands between messages" if not frame.size else "a line holds only white space"


@check(
    "MCP104",
    "stdio-embedded-newline",
    on=Message,
    when=("completes-a-split-message",),
    framing="line",
    severity=ERROR,
    group=FRAMING,
    spec=STDIO,
)
def stdio_embedded_newline(message: Message, _: Conversation) -> Verdict:
    r"""A message is cut by raw line feeds: its lines are JSON only when they are joined.

    A message must not contain line feeds, since each one ends it. The receiver sees several broken lines, drops them
    all, and a request in them is never answered. The cause is indented output or text that was not escaped.

    Fix: Serialise without indentation (``json.dumps(message)``, ``JSON.stringify(message)``) and let the serialiser
    escape line feeds inside strings as ``\n``.
    """
    fact = message.fact("completes-a-split-message")
    lines = fact.text if fact is not None else "several"
    return f"one message is spread over {lines} lines by raw line feeds; this is the last of them"


@check(
    "MCP105",
    "stdio-two-on-a-line",
    on=Message,
    when=(TRAILING_DATA,),
    framing="line",
    severity=ERROR,
    group=FRAMING,
    spec=STDIO,
)
def stdio_two_on_a_line(message: Message, _: Conversation) -> Verdict:
    """Several messages stand on one line.

    A line is one message. A receiver that parses the whole line fails and drops all of them, so requests among them
    are never answered. The cause is a missing LF after a message.

    Fix: Write an LF after every message, in the same write as the message.
    """
    count = objects_on(message)
    return f"{count} JSON objects stand on one line, so receivers drop them all" if count > 1 else None


def objects_on(message: Message) -> int:
    """How many JSON objects stand one after another on the message's line; 0 if anything else stands there too."""
    if TRAILING_DATA not in message.flaws or message.kind != INVALID:
        return 0
    text = message.raw.decode(errors="replace").strip(" \t\r\n")
    count = position = 0
    try:
        while position < len(text):
            thing, position = _JSON.raw_decode(text, position)
            if not isinstance(thing, dict):
                return 0
            count += 1
            while position < len(text) and text[position] in " \t\r":
                position += 1
    except (ValueError, RecursionError):
        return 0
    return count


@check(
    "MCP106",
    "stdio-no-final-newline",
    on=Frame,
    when=(UNTERMINATED,),
    framing="line",
    severity=WARNING,
    group=FRAMING,
    spec=STDIO,
)
def stdio_no_final_newline(frame: Frame, _: Conversation) -> Verdict:
    """The stream ended inside a line: its last bytes have no LF.

    The specification leaves open what such a rest means, and peers differ: all four SDK clients and the TypeScript
    servers drop it, the Python servers process it. If the process was ended in the middle of a write, the message is
    lost as well.

    Fix: Write the LF together with the message, and flush before the process ends.
    """
    return f"the stream ended after {size(frame.size)} of a line without its LF: {quoted(frame.payload)}"


@check(
    "MCP107",
    "stdio-cr",
    on=Frame,
    when=(BARE_CR, CR_BEFORE_LF),
    framing="line",
    severity=NOTE,
    group=FRAMING,
    spec=STDIO,
)
def stdio_cr(frame: Frame, conversation: Conversation) -> Verdict:
    r"""A carriage return stands on the line: before the LF (a note, told once per channel), or inside (a warning).

    Lines end with LF alone. A CR before it is white space to JSON and every SDK tried accepts it. A CR between the
    tokens is legal JSON too, yet the Python SDK servers cut the line there, and both halves are lost.

    Fix: Write in binary mode or with newline translation off (``newline="\n"`` in Python), and do not indent messages.
    """
    if BARE_CR in frame.flaws and frame.payload.lstrip()[:1] in (b"{", b"["):
        where = frame.payload.find(b"\r")
        return Hit(f"a CR stands inside the message (byte {where} of the line); Python servers cut it there", WARNING)
    if CR_BEFORE_LF in frame.flaws and (frame.channel, CR_BEFORE_LF) not in conversation.frame_flaws:
        return "lines on this channel end with CR LF; this is the first"
    return None


@check(
    "MCP114",
    "message-too-large",
    on=Frame,
    over=MIB,
    severity=WARNING,
    group=FRAMING,
    spec=STDIO,
    in_part=True,
)
def message_too_large(frame: Frame, _: Conversation) -> Verdict:
    """A message is larger than some peers accept: a line over 10 MiB, the body of a POST over 4, an event over 1.

    The protocol sets no limit, but the stdio transport of the TypeScript SDK closes the connection when its buffer
    holds more than 10 MiB without a line end, SDK servers take POSTs of up to 4 MiB, and the Python SDK 2.x client
    events of up to 1 MiB. Whoever pays for model tokens will not want such a message either.

    Fix: Return less at once: page the result, return a resource link, or truncate the text and say so.
    """
    limit, consequence = LIMITS.get((frame.framing, frame.direction), (None, ""))
    if limit is None or frame.size <= limit:
        return None
    return f"this message has {size(frame.size)}; beyond {size(limit)} {consequence}"
