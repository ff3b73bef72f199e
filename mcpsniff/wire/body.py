"""Remove the content codings of a body, step by step and from the copy only: the wire keeps the coded bytes.

What a compressor has flushed comes out at once, so that a compressed event stream gives each event when it arrives.
What a body expands to is capped while inflating: a few kilobytes can hold gigabytes.

The output and the flaws depend on the coded bytes alone, not on how they were cut into reads. There is one exception:
where a body is damaged beyond its first `HISTORY` coded bytes, what the `BLOCK` before the damage holds may be missing.
"""

from collections.abc import Iterator
from typing import Final

from mcpsniff.wire.codings import CODINGS, Coding, DamagedError, Member, TooLargeError
from mcpsniff.wire.frames import (
    CODING_CUT,
    CODING_DAMAGED,
    CODING_MISMATCH,
    CODING_TRAILING,
    CODING_UNKNOWN,
    DECODE_CAP,
    DEFAULT_FRAME_LIMIT,
)

MAX_CODINGS: Final = 5
"""More of them than this, one in the other, are not removed."""
STREAM_RATIO: Final = 512
"""An event stream may expand to the limit and this many times its coded bytes. Gzip of one large event over and over
comes to 250, of small ones to 60; gzip of zeros reaches 1,032."""
BLOCK: Final = 4096
"""Coded bytes that are decoded at a time, counted from the start of the body."""
HISTORY: Final = 64 * BLOCK
"""Coded bytes at the beginning of a body that are kept for a second look, should they be damaged."""

_PIECE: Final = 64 * 1024


class BodyDecoder:
    """Decodes one body. Without a coding the data pass through as they are."""

    def __init__(self, codings: str | None, *, limit: int = DEFAULT_FRAME_LIMIT, stream: bool = False) -> None:
        """``codings``: the value of Content-Encoding (several field lines joined by commas), None if there is none.

        A body is decoded up to ``limit`` bytes; a ``stream`` of events, which need not end, as long as it does not
        expand too far (`STREAM_RATIO`).
        """
        self._layers: list[_Layer] = []
        self._first = 0  # the first layer that still takes input: those before one that is over are done with
        self._unknown = False
        names = [name.strip().lower() for name in (codings or "").split(",")]
        names = [name for name in names if name not in ("", "identity")]
        self.coding: str | None = ", ".join(names) or None
        """The codings as declared, in lower case and without ``identity``; None if there are none."""
        if len(names) > MAX_CODINGS:
            self._unknown = True
            return
        for name in reversed(names):  # the last one was applied last (RFC 9110 section 8.4)
            coding = CODINGS.get(name)
            if coding is None or not _is_installed(coding):
                self._unknown = True
                return
            self._layers.append(_Layer(coding, limit, stream=stream))

    @property
    def flaws(self) -> tuple[str, ...]:
        """What was found so far, each flaw once (see `mcpsniff.wire.frames.FRAME_FLAWS`)."""
        found = [CODING_UNKNOWN] if self._unknown else []
        for layer in self._layers:
            found += layer.flaws
        return tuple(dict.fromkeys(found))

    def feed(self, data: bytes) -> bytes:
        """The next coded bytes; returns all that can be decoded by now."""
        if not self._layers:
            return data
        return b"".join(self._through(0, data))

    def pieces(self, data: bytes) -> Iterator[bytes]:
        """As `feed`, but in pieces of some 64 KiB, however far the data expand."""
        if not self._layers:
            yield data
        else:
            yield from self._through(0, data)

    @property
    def is_broken(self) -> bool:
        """True if less was given than was coded, and nothing more will be."""
        return any(layer.is_broken for layer in self._layers)

    def gap(self) -> None:
        """Coded bytes are missing here: what follows cannot be decoded."""
        self._first = len(self._layers)

    def finish(self) -> bytes:
        """The body has ended; returns what was held back to find out what it is."""
        out: list[bytes] = []
        for number, layer in enumerate(self._layers):
            if number < self._first:
                continue
            for piece in layer.finish():
                out += self._through(number + 1, piece)
            if layer.is_broken:
                break  # what this layer did not give is no fault of the next one
        self._first = len(self._layers)
        return b"".join(out)

    def _through(self, number: int, data: bytes) -> Iterator[bytes]:
        """Send data through the layers from ``number`` on."""
        if number == len(self._layers):
            yield data
            return
        layer = self._layers[number]
        if number >= self._first:
            for piece in layer.feed(data):
                yield from self._through(number + 1, piece)
                if self._first > number:
                    return
        if layer.is_over:
            self._first = max(self._first, len(self._layers) if layer.is_broken else number + 1)


class _Layer:
    """Removes one coding."""

    def __init__(self, coding: Coding, limit: int, *, stream: bool) -> None:
        self.flaws: list[str] = []
        self.is_over = False
        """True when no further byte can lead to output."""
        self._coding = coding
        self._limit = limit
        self._ratio = STREAM_RATIO if stream else 0
        self._taken = 0
        self._given = 0
        self._is_plain = False
        self._member: Member | None = None
        self._members = 0
        self._head = b""
        self._history: bytearray | None = bytearray()
        self._given_before = 0

    @property
    def is_broken(self) -> bool:
        """True if the layer gave less than was coded."""
        return not {CODING_CUT, CODING_DAMAGED, DECODE_CAP}.isdisjoint(self.flaws)

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Decode; the coded bytes are cut at fixed places, so that limits do not depend on the reads."""
        start = 0
        while start < len(data) and not self.is_over:
            if self._is_plain:
                yield data[start:]
                return
            stop = min(len(data), start + BLOCK - self._taken % BLOCK)
            rest = data[start:stop]
            self._taken += len(rest)
            while rest and not self.is_over and not self._is_plain:
                if self._member is None:
                    rest = self._open(self._head + rest)
                    if self._is_plain:
                        yield rest
                else:
                    yield from self._decode(rest)
                    rest = self._head
                    self._head = b""
            start = stop

    def finish(self) -> Iterator[bytes]:
        """The coded bytes have ended."""
        if self.is_over or self._is_plain:
            return
        if self._member is not None:
            self._flaw(CODING_CUT)
        elif self._head:
            if self._members:
                self._flaw(CODING_TRAILING)
            elif self._coding.is_member(self._head, final=True):
                self._flaw(CODING_CUT)
            elif (short := _decoded(self._coding, self._head)) is not None:
                yield short
            else:
                self._flaw(CODING_MISMATCH)
                yield self._head

    # -- members ---------------------------------------------------------------------------------------------------

    def _open(self, head: bytes) -> bytes:
        """Find out what begins with ``head``; returns the bytes to go on with."""
        self._head = b""
        known = self._coding.is_member(head) if self._coding.joins or not self._members else False
        if known is None:
            self._head = head
            return b""
        if known:
            self._member = self._coding.open(head)
            self._members += 1
            self._history = bytearray()
            self._given_before = self._given
        elif self._members:
            self._flaw(CODING_TRAILING)
            self.is_over = True
        else:
            self._flaw(CODING_MISMATCH)
            self._is_plain = True
        return head

    def _decode(self, data: bytes) -> Iterator[bytes]:
        """Feed the open member; what lies behind its end is left in ``_head``."""
        member = self._member
        assert member is not None
        if self._history is not None:
            self._history += data
            if self._taken > HISTORY:
                self._history = None
        try:
            yield from self._output(member, data)
        except TooLargeError:
            self._stop(DECODE_CAP)
        except DamagedError:
            yield from self._salvage()
        if member.ended and not self.is_over:
            self._member = None
            self._head = member.unused

    def _output(self, member: Member, data: bytes) -> Iterator[bytes]:
        """All output of the member for ``data``, up to the cap."""
        while not self.is_over:
            piece = member.decode(data, _PIECE)
            data = b""
            yield from self._give(piece)
            if not member.more:
                return

    def _give(self, piece: bytes) -> Iterator[bytes]:
        blocks = -(-self._taken // BLOCK)
        room = self._limit + self._ratio * BLOCK * blocks - self._given
        self._given += min(room, len(piece))
        if piece and room:
            yield piece[:room]
        # Only now: if the layer above needs no more, this one was never asked for more than its limit.
        if len(piece) > room:
            self._stop(DECODE_CAP)

    def _salvage(self) -> Iterator[bytes]:
        """The member is damaged: decode it once more byte by byte, up to the damage, and give what is missing."""
        history, known = self._history, self._given - self._given_before
        if history is None:
            self._stop(CODING_DAMAGED)
            return
        member = self._coding.open(bytes(history[:2]))
        for at in range(len(history)):
            try:
                for piece in _pieces(member, bytes(history[at : at + 1])):
                    yield from self._give(piece[known:])
                    known = max(0, known - len(piece))
                    if self.is_over:
                        return
            except (DamagedError, TooLargeError):
                break
            if member.ended:
                # Only a decoder that does not tell what follows its end comes here.
                self._member = None
                self._stop(CODING_TRAILING)
                return
        if self._members == 1 and self._given == 0 and not self._coding.is_certain(bytes(history[:2])):
            self._flaw(CODING_MISMATCH)
            self._is_plain = True
            yield bytes(history)
            return
        self._stop(CODING_DAMAGED)

    def _stop(self, flaw: str) -> None:
        self._flaw(flaw)
        self.is_over = True

    def _flaw(self, flaw: str) -> None:
        if flaw not in self.flaws:
            self.flaws.append(flaw)


def _pieces(member: Member, data: bytes) -> Iterator[bytes]:
    """All output of a member for ``data``."""
    while True:
        yield member.decode(data, _PIECE)
        data = b""
        if not member.more:
            return


def _decoded(coding: Coding, data: bytes) -> bytes | None:
    """What a whole body of a few bytes decodes to; None if it is no whole body in this coding."""
    member = coding.open(data)
    try:
        out = member.decode(data, _PIECE)
    except (DamagedError, TooLargeError):
        return None
    return out if member.ended and not member.unused else None


def _is_installed(coding: Coding) -> bool:
    try:
        coding.open(b"")
    except ImportError:
        return False
    return True
