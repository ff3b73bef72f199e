"""Play event streams to the splitter, and a second reader of event streams, written another way, to compare with."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from mcpsniff.wire.frames import Frame, Span
from mcpsniff.wire.sse import EventSplitter


def split(*chunks: bytes, limit: int = 16 << 20) -> list[Frame]:
    """All frames of a stream that arrives in these chunks, one microsecond apart."""
    return played(EventSplitter(7, "s2c", limit=limit), chunks)


def played(splitter: EventSplitter, chunks: Iterable[bytes]) -> list[Frame]:
    frames, position, t = [], 0, 0
    for chunk in chunks:
        frames += splitter.feed(t, chunk, (Span(7, position, position + len(chunk)),))
        position += len(chunk)
        t += 1
    return frames + splitter.finish(t)


def essence(frame: Frame) -> tuple[object, ...]:
    """All of a frame but its times."""
    return frame.spans, frame.payload, frame.size, frame.flaws, frame.sse


def every_cut(whole: bytes) -> Iterable[tuple[bytes, ...]]:
    """The stream whole, byte by byte, and cut in two at every place."""
    yield (whole,)
    yield tuple(bytes([byte]) for byte in whole)
    for cut in range(len(whole) + 1):
        yield whole[:cut], whole[cut:]


@dataclass
class Naive:
    """WHATWG HTML 9.2.6 to the letter, over a whole stream as one text."""

    events: list[tuple[str, str, str]] = field(default_factory=list)
    """Type, data and last event id of each event."""
    last_event_id: str = ""
    reconnection_time: int | None = None
    unfinished: bool = False
    """True if something stands after the last blank line."""

    def read(self, stream: bytes) -> "Naive":
        text = stream.decode("utf-8", "replace")
        kind = data = ""
        id_buffer = ""
        *lines, rest = re.split("\r\n|\n|\r", text.removeprefix("\ufeff"))
        for line in lines:
            self.unfinished = True
            if line == "":
                self.unfinished = False
                self.last_event_id = id_buffer
                if data:
                    self.events.append((kind or "message", data.removesuffix("\n"), self.last_event_id))
                kind = data = ""
                continue
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if name == "event":
                kind = value
            elif name == "data":
                data += value + "\n"
            elif name == "id" and "\0" not in value:
                id_buffer = value
            elif name == "retry" and re.fullmatch("[0-9]+", value):
                self.reconnection_time = int(value)
        self.unfinished = self.unfinished or rest != "" or (text == "\ufeff")
        return self
