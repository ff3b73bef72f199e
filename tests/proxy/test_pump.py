"""The tap itself: forwarded = received = recorded, for any chunking and whatever fails beside it."""

import errno
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpsniff.proxy.pump import BROKEN, CUT, EOF, Pump, retire
from mcpsniff.proxy.recorder import Recorder


class Line:
    """A pump between two pipes, running in a thread."""

    def __init__(self, recorder: Recorder, null: int) -> None:
        self.source, self.feed = os.pipe()
        self.drain, self.sink = os.pipe()
        self.pump = Pump(self.source, self.sink, 0, recorder, null)
        self.thread = threading.Thread(target=self.pump.run, daemon=True)
        self.open = {self.source, self.sink, self.feed, self.drain}

    def close(self, descriptor: int) -> None:
        if descriptor in self.open:
            self.open.remove(descriptor)
            os.close(descriptor)


@contextmanager
def a_line(recorder: Recorder | None = None) -> Iterator[Line]:
    null = os.open(os.devnull, os.O_RDWR)
    line = Line(recorder or Recorder(), null)
    line.thread.start()
    try:
        yield line
    finally:
        line.close(line.feed)
        line.close(line.drain)
        line.thread.join(10)
        assert not line.thread.is_alive()
        for descriptor in list(line.open):
            line.close(descriptor)
        os.close(null)


def read_all(descriptor: int) -> bytes:
    pieces = []
    while piece := os.read(descriptor, 1 << 20):
        pieces.append(piece)
    return b"".join(pieces)


def carry(line: Line, pieces: list[bytes]) -> bytes:
    """Feed pieces, then the end; return what came out."""

    def feed() -> None:
        for piece in pieces:
            rest = piece
            while rest:
                rest = rest[os.write(line.feed, rest) :]
        line.close(line.feed)

    feeder = threading.Thread(target=feed)
    feeder.start()
    out = read_all(line.drain)
    feeder.join()
    return out


def fill(line: Line) -> int:
    """Write until nothing more fits, slowly enough for the pump to take what it can; return how much went in."""
    os.set_blocking(line.feed, False)
    sent = full = 0
    while full < 20:
        threading.Event().wait(0.001)
        try:
            sent += os.write(line.feed, b"x" * 4096)
            full = 0
        except BlockingIOError:
            full += 1
    return sent


def recorded(recorder: Recorder) -> tuple[bytes, int]:
    """Return the recorded bytes and how many are owned up to in gaps."""
    recorder.close()
    entries, last = recorder.take()
    assert last
    return (
        b"".join(body for _, kind, _, body in entries if kind == "chunk"),
        sum(body["bytes"] for _, kind, _, body in entries if kind == "gap"),
    )


PIECES = st.lists(st.binary(min_size=1, max_size=300) | st.integers(1, 200_000).map(lambda n: b"\xe2\x82\n" * (n // 3)))


@settings(max_examples=40, deadline=None)
@given(PIECES)
def test_law_forwarded_is_received_for_any_chunking(pieces: list[bytes]) -> None:
    recorder = Recorder()
    with a_line(recorder) as line:
        assert carry(line, pieces) == b"".join(pieces)
        line.thread.join(10)
        assert line.pump.outcome == EOF
        assert line.pump.passed == len(b"".join(pieces))
        assert line.pump.pending() == 0
    assert recorded(recorder) == (b"".join(pieces), 0)


@settings(max_examples=20, deadline=None)
@given(PIECES, st.integers(0, 20_000))
def test_law_a_full_queue_changes_nothing_but_the_record(pieces: list[bytes], limit: int) -> None:
    recorder = Recorder(limit)
    recorder._courtesy = 0.0
    with a_line(recorder) as line:
        assert carry(line, pieces) == b"".join(pieces)
    data, lost = recorded(recorder)
    assert len(data) + lost == len(b"".join(pieces))


def test_a_slow_receiver_holds_the_sender_up_and_nothing_piles_up() -> None:
    with a_line() as line:
        sent = fill(line)
        assert sent < 1 << 20
        os.set_blocking(line.feed, True)
        line.close(line.feed)
        assert len(read_all(line.drain)) == sent


@pytest.mark.parametrize("side", ["source", "sink"])
def test_a_descriptor_that_somebody_made_non_blocking(side: str) -> None:
    data = b"0123456789abcdef" * (1 << 15)
    with a_line() as line:
        os.set_blocking(getattr(line, side), False)
        assert carry(line, [b"first\n", data]) == b"first\n" + data


def test_a_receiver_that_hangs_up_is_news_for_the_sender() -> None:
    with a_line() as line:
        line.close(line.drain)
        os.write(line.feed, b"nobody reads this")
        line.thread.join(10)
        assert line.pump.outcome == BROKEN
        with pytest.raises(BrokenPipeError):
            os.write(line.feed, b"more")


def test_a_line_that_is_cut_ends_both_ways() -> None:
    with a_line() as line:
        os.write(line.feed, b"before")
        assert os.read(line.drain, 100) == b"before"
        line.pump.cut()
        assert read_all(line.drain) == b""
        # The read that was under way at the cut still takes what comes; it goes nowhere, and it is the last.
        with suppress(BrokenPipeError):
            os.write(line.feed, b"after")
        line.close(line.feed)
        line.thread.join(10)
        assert line.pump.outcome == CUT


def test_what_is_on_its_way_is_counted() -> None:
    with a_line() as line:
        sent = fill(line)
        # Held in the pump or in the source; what is in the sink's pipe has been passed, or a part of it.
        assert 0 < line.pump.pending() <= sent
        assert line.pump.passed + line.pump.pending() == sent


def test_a_retired_number_stays_taken() -> None:
    null = os.open(os.devnull, os.O_RDWR)
    reading, writing = os.pipe()
    retire(writing, null)
    assert os.read(reading, 1) == b""  # the pipe's last writing end is gone
    assert os.write(writing, b"into the void") == 13
    other = os.dup(null)
    assert other != writing
    for descriptor in (null, reading, writing, other):
        os.close(descriptor)


@pytest.mark.parametrize("number", [errno.EIO, errno.ECONNRESET])
def test_a_source_that_fails_ends_the_stream(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.read
    with a_line() as line:
        os.write(line.feed, b"good")
        assert real(line.drain, 100) == b"good"

        def failing(descriptor: int, size: int) -> bytes:
            if descriptor == line.source:
                raise OSError(number, os.strerror(number))
            return real(descriptor, size)

        other = Pump(line.source, line.sink, 0, Recorder(), os.open(os.devnull, os.O_RDWR))
        monkeypatch.setattr(os, "read", failing)
        assert other.run() == "reset"


def test_the_end_is_known_here_before_the_receiver_can_react_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    known: list[str | None] = []
    with a_line() as line:

        def watched(descriptor: int, null: int) -> None:
            known.append(line.pump.outcome)
            retire(descriptor, null)

        monkeypatch.setattr("mcpsniff.proxy.pump.retire", watched)
        line.close(line.feed)
        line.thread.join(10)

    assert known == [EOF, EOF]
