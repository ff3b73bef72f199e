"""Notice messages that were cut by raw line feeds: lines that are no JSON alone and are JSON when joined.

A server that prints indented JSON, or puts a raw newline into a string, sends many broken lines for one fault. So a
line that could be the beginning of a message is held back from the checks until the next lines decide: they complete
it (one finding on the line that completes it), or they do not (then each is judged as it stands). Only the judgement
waits; the messages themselves are emitted at once.
"""

import json
from typing import Final

from mcpsniff.protocol.message import INVALID, Fact, Message
from mcpsniff.protocol.reading import NOT_JSON
from mcpsniff.wire.frames import INCOMPLETE

LINE_LIMIT: Final = 200
SIZE_LIMIT: Final = 65_536
"""Bytes that are joined at most; real cases are a message of some kilobytes."""


class FragmentWatch:
    """Holds back broken lines, per channel, while they may still be parts of one message."""

    def __init__(self) -> None:
        self._held: dict[int, list[Message]] = {}

    @property
    def watching(self) -> bool:
        """True while any line is held back."""
        return bool(self._held)

    def observe(self, message: Message) -> list[Message]:
        """Take the next message of a channel; return the messages that can be judged now, in order."""
        channel = message.frame.channel
        held = self._held.get(channel, [])
        if not (_is_broken_line(message) or (held and _may_be_inside(message))):
            return [*self.release(channel), message]
        lines = [*held, message]
        verdict = _joined(lines)
        if verdict is True and held:
            del self._held[channel]
            message.facts += (Fact("completes-a-split-message", held[0].n, text=str(len(lines))),)
            for part in held:
                part.facts += (Fact("part-of-a-split-message", message.n),)
            message.facts += (Fact("part-of-a-split-message", message.n),)
            return lines
        if verdict is None:
            self._held[channel] = lines
            return []
        if held:
            self._held.pop(channel)
            return [*held, *self.observe(message)]
        return [message]

    def release(self, channel: int) -> list[Message]:
        """Stop waiting on a channel: what was held back is judged as it stands."""
        return self._held.pop(channel, [])

    def release_all(self) -> list[Message]:
        """Stop waiting altogether."""
        return [message for channel in sorted(self._held) for message in self.release(channel)]


def _is_broken_line(message: Message) -> bool:
    return (
        message.kind == INVALID
        and NOT_JSON in message.flaws
        and message.frame.framing == "line"
        and INCOMPLETE.isdisjoint(message.flaws)
    )


def _may_be_inside(message: Message) -> bool:
    """True for a line that is JSON by accident, such as the last string of an indented array."""
    return message.kind == INVALID and message.frame.framing == "line" and INCOMPLETE.isdisjoint(message.flaws)


def _joined(lines: list[Message]) -> bool | None:
    """True if the lines make one JSON object together, None if more lines could, False if none can."""
    if len(lines) > LINE_LIMIT or sum(len(line.raw) for line in lines) > SIZE_LIMIT:
        return False
    text = b"\n".join(line.raw for line in lines).decode(errors="replace")
    if text.lstrip()[:1] not in ("{", "["):
        return False
    try:
        # A raw line feed inside a string is the commonest cut of all; only strict=False can see through it.
        json.loads(text, strict=False)
    except json.JSONDecodeError as error:
        at_the_end = error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string")
        return None if at_the_end else False
    except (RecursionError, ValueError):
        return False
    return True
