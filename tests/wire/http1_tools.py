"""What the tests of HTTP/1.1 share: splitting whole and in pieces, and comparing parts without their times."""

from collections.abc import Iterable, Iterator

from mcpsniff.wire.frames import Span
from mcpsniff.wire.http1 import Data, End, Head, Http1Splitter, Part, Trailers, Undecoded

CHANNEL = 7


def split(direction: str, *chunks: bytes, expect: Iterable[str] = ()) -> list[Part]:
    """All parts of the stream that arrives in ``chunks``, at times 0, 1, 2 …"""
    splitter = Http1Splitter(CHANNEL, direction)
    for method in expect:
        splitter.expect(method)
    parts = [part for t, chunk in enumerate(chunks) for part in splitter.feed(t, chunk)]
    return parts + splitter.finish(len(chunks))


def spans_of(part: Part) -> Iterator[Span]:
    if isinstance(part, Data):
        if part.lead:
            yield part.lead
        yield part.span
    else:
        yield from part.spans


def assert_partition(parts: Iterable[Part], size: int, start: int = 0) -> None:
    """The spans of all parts are the stream, in order, without holes."""
    position = start
    for part in parts:
        for span in spans_of(part):
            assert (span.channel, span.start) == (CHANNEL, position)
            assert span.stop > span.start
            position = span.stop
        if isinstance(part, Data):
            assert len(part.data) == part.span.stop - part.span.start
    assert position == start + size


def essence(parts: Iterable[Part]) -> list[tuple[object, ...]]:
    """The parts without their times, and neighbouring pieces joined: what must not depend on the reads."""
    told: list[tuple[object, ...]] = []
    for part in parts:
        before = told[-1] if told else (None,)
        if isinstance(part, Head):
            read = (part.start_line, part.method, part.target, part.status, part.reason, part.version, part.headers)
            told.append((Head, read, part.spans, part.flaws, part.framing, part.length))
        elif isinstance(part, Data):
            if before[0] is Data and part.lead is None and before[2] == part.span.start:
                told[-1] = (Data, before[1], part.span.stop, *before[3:4], before[4] + part.data)
            else:
                told.append((Data, part.span.start, part.span.stop, part.lead, part.data))
        elif isinstance(part, Undecoded):
            (span,) = part.spans
            if before[0] is Undecoded and before[2:] == (span.start, part.why):
                told[-1] = (Undecoded, before[1], span.stop, part.why)
            else:
                told.append((Undecoded, span.start, span.stop, part.why))
        elif isinstance(part, Trailers):
            told.append((Trailers, part.headers, part.spans))
        else:
            told.append((End, part.complete, part.flaws, part.spans))
    return told


def bodies(parts: Iterable[Part]) -> list[bytes]:
    """The body of each message."""
    found: list[bytes] = []
    for part in parts:
        if isinstance(part, Head):
            found.append(b"")
        elif isinstance(part, Data):
            found[-1] += part.data
    return found


def heads(parts: Iterable[Part]) -> list[Head]:
    return [part for part in parts if isinstance(part, Head)]


def ends(parts: Iterable[Part]) -> list[End]:
    return [part for part in parts if isinstance(part, End)]


def undecoded(parts: Iterable[Part], whole: bytes) -> list[tuple[str, bytes]]:
    """What was not decoded, and why, neighbouring pieces joined."""
    return [
        (why, whole[start:stop])
        for kind, start, stop, why, *_ in (e for e in essence(parts) if e[0] is Undecoded)
        if kind is Undecoded
    ]
