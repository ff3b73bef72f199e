"""What `mcpsniff redact` has removed from that part of a capture which is to be sent or printed again."""

import re
from collections.abc import Iterable
from typing import Final

from mcpsniff.capture.reader import Capture
from mcpsniff.capture.records import REDACT, Header
from mcpsniff.protocol.message import Message

_NAME: Final = re.compile(r"redacted-[a-z0-9-]*[0-9a-f](?:@example\.invalid)?(?![\w-])")
CLIENT: Final = "c2s"


def is_redacted(capture: Capture) -> bool:
    """True if something was removed from the capture, which is read for that unless its header says so."""
    return tells_removal(capture.header) or any(record.kind == REDACT for record in capture.records())


def tells_removal(header: Header) -> bool:
    """True if the header of a capture says that values were removed: redacting one without any removes none."""
    return header.redacted is not None and header.redacted.get("places") != 0


def removed_from(capture: Capture, messages: Iterable[Message]) -> list[str]:
    """What was removed from those of ``messages`` that the client sent, and from their heads, in words.

    Such as ``#12 tools/call: redacted token (params.arguments.key)``. Captured text in them is not made harmless. The
    capture is read once.
    """
    wanted = [(message, message.frame.spans) for message in messages if message.direction == CLIENT]
    found: list[str] = []
    for record in capture.records():
        if record.kind != REDACT or record.channel is None:
            continue
        start, length = record.body.get("start"), record.body.get("length")
        is_placed = type(start) is int and type(length) is int
        for message, spans in wanted:
            if any(
                span.channel == record.channel
                and (not is_placed or (start < span.stop and span.start < start + max(length, 1)))
                for span in spans
            ):
                at = record.body.get("at")
                found.append(
                    f"#{message.n} {message.method or message.kind}: redacted {record.body.get('what')}"
                    + (f" ({at})" if at else "")
                )
                break
    return found


def names_in(text: str) -> list[str]:
    """The names in a text that stand for values that were removed, each once."""
    return list(dict.fromkeys(_NAME.findall(text)))
