"""Two directions in one thread: whatever one of them does, the other flows, and both carry every byte."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpsniff.proxy.duplex import Duplex, suits
from mcpsniff.proxy.pump import BROKEN, CUT, EOF, PIPE_BUF, Pump
from mcpsniff.proxy.recorder import Recorder

PATIENCE = 60.0


class Way:
    """One direction: what is fed comes out at the drain."""

    def __init__(self, channel: int, recorder: Recorder, null: int, ended: list[int]) -> None:
        source, self.feed = os.pipe()
        self.drain, sink = os.pipe()
        self.pump = Pump(source, sink, channel, recorder, null, tell=ended.append)
        self._mine = {source, sink, self.feed, self.drain}

    def write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self.feed, rest) :]

    def read(self, size: int) -> bytes:
        """Exactly so many bytes, or fewer at the end of the stream."""
        got = bytearray()
        while len(got) < size and (piece := os.read(self.drain, size - len(got))):
            got += piece
        return bytes(got)

    def close(self, *descriptors: int) -> None:
        for descriptor in descriptors or list(self._mine):
            if descriptor in self._mine:
                self._mine.remove(descriptor)
                os.close(descriptor)

    def fill(self) -> bytes:
        """Feed until nothing more is taken; return what was fed."""
        os.set_blocking(self.feed, False)
        sent = bytearray()
        quiet_since = time.monotonic()
        while time.monotonic() - quiet_since < 0.1:
            try:
                count = os.write(self.feed, bytes((len(sent) // 8192 + n) % 251 for n in range(8192)))
            except BlockingIOError:
                time.sleep(0.01)
                continue
            sent += bytes((len(sent) // 8192 + n) % 251 for n in range(8192))[:count]
            quiet_since = time.monotonic()
        os.set_blocking(self.feed, True)
        return bytes(sent)


class Line:
    """Both directions, running."""

    def __init__(self) -> None:
        self.recorder = Recorder()
        self.null = os.open(os.devnull, os.O_RDWR)
        self.ended: list[int] = []
        self.ways = [Way(channel, self.recorder, self.null, self.ended) for channel in range(2)]
        self.duplex = Duplex(self.ways[0].pump, self.ways[1].pump)
        self.threads = [threading.Thread(target=work, daemon=True) for work in (self.duplex.run, self.duplex.assist)]

    def carried_by_the_second_thread(self) -> Pump | None:
        return self.duplex._busy

    def recorded(self, channel: int) -> bytes:
        batch, _ = self.recorder.take()
        return b"".join(body for _, kind, number, body in batch if kind == "chunk" and number == channel)


@contextmanager
def a_line() -> Iterator[Line]:
    line = Line()
    for thread in line.threads:
        thread.start()
    try:
        yield line
    finally:
        for way in line.ways:
            way.close(way.feed, way.drain)
        for thread in line.threads:
            thread.join(PATIENCE)
        assert not any(thread.is_alive() for thread in line.threads)
        assert sorted(line.ended) == [0, 1]
        for way in line.ways:
            way.close()
        os.close(line.null)


def eventually(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def in_the_background(work: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def test_a_conversation_to_and_fro() -> None:
    with a_line() as line:
        forth, back = line.ways
        for number in range(500):
            request, answer = b"request %d\n" % number, b"answer %d\n" % number
            forth.write(request)
            assert forth.read(len(request)) == request
            back.write(answer)
            assert back.read(len(answer)) == answer
        assert line.carried_by_the_second_thread() is None


@pytest.mark.parametrize("blocked", [0, 1])
def test_a_direction_that_nobody_reads_does_not_hold_up_the_other(blocked: int) -> None:
    with a_line() as line:
        stuck, free = line.ways[blocked], line.ways[1 - blocked]
        sent = stuck.fill()
        eventually(lambda: line.carried_by_the_second_thread() is stuck.pump)
        for size in (10, PIPE_BUF, PIPE_BUF + 1, 300_000, 10):
            data = os.urandom(size)
            feeder = in_the_background(lambda data=data: free.write(data))  # type: ignore[misc]
            assert free.read(size) == data
            feeder.join(PATIENCE)
        assert stuck.read(len(sent)) == sent


def test_both_directions_blocked_and_freed_in_either_order() -> None:
    for first in (0, 1):
        with a_line() as line:
            sent = [way.fill() for way in line.ways]
            for number in (first, 1 - first):
                assert line.ways[number].read(len(sent[number])) == sent[number]
            for way in line.ways:
                way.write(b"and on\n")
                assert way.read(7) == b"and on\n"


@pytest.mark.parametrize("size", [PIPE_BUF + 1, 65_536, 1 << 20])
def test_after_a_large_message_the_first_thread_has_both_again(size: int) -> None:
    with a_line() as line:
        forth, back = line.ways
        data = os.urandom(size)
        feeder = in_the_background(lambda: back.write(data))
        assert back.read(size) == data
        feeder.join(PATIENCE)
        for number in range(20):
            for way in (back, forth):
                way.write(b"%d\n" % (number % 10))
                assert way.read(2) == b"%d\n" % (number % 10)
        eventually(lambda: line.carried_by_the_second_thread() is None)


PIECES = st.lists(st.sampled_from([1, 7, 200, PIPE_BUF - 1, PIPE_BUF, PIPE_BUF + 1, 20_000, 70_000]), max_size=12)


@settings(max_examples=30, deadline=None)
@given(PIECES, PIECES, st.integers(0, 3))
def test_law_forwarded_is_received_is_recorded_in_both_directions(
    forth: list[int], back: list[int], slow_reader: int
) -> None:
    sent = [b"".join(os.urandom(size) for size in sizes) for sizes in (forth, back)]
    got: list[bytes] = [b"", b""]

    def feed(number: int, sizes: list[int]) -> None:
        at = 0
        for size in sizes:
            line.ways[number].write(sent[number][at : at + size])
            at += size
        line.ways[number].close(line.ways[number].feed)

    def drain(number: int) -> None:
        pieces = []
        while piece := os.read(line.ways[number].drain, 1 << 16):
            pieces.append(piece)
            if slow_reader & (1 << number):
                time.sleep(0.001)
        got[number] = b"".join(pieces)

    with a_line() as line:
        work = [in_the_background(lambda n=n, s=s: feed(n, s)) for n, s in enumerate((forth, back))]  # type: ignore[misc]
        work += [in_the_background(lambda n=n: drain(n)) for n in range(2)]  # type: ignore[misc]
        for thread in work:
            thread.join(PATIENCE)
    assert got == sent
    assert [way.pump.outcome for way in line.ways] == [EOF, EOF]
    assert [way.pump.passed for way in line.ways] == [len(data) for data in sent]
    batch, _ = line.recorder.take()
    kept = [b"".join(body for _, kind, n, body in batch if kind == "chunk" and n == number) for number in range(2)]
    assert kept == sent


@pytest.mark.parametrize("ending", [0, 1])
def test_one_direction_ends_and_the_other_goes_on(ending: int) -> None:
    with a_line() as line:
        over, other = line.ways[ending], line.ways[1 - ending]
        over.write(b"last words")
        over.close(over.feed)
        assert over.read(100) == b"last words"
        eventually(lambda: over.pump.outcome == EOF)
        for size in (5, 100_000, 5):
            data = os.urandom(size)
            feeder = in_the_background(lambda data=data: other.write(data))  # type: ignore[misc]
            assert other.read(size) == data
            feeder.join(PATIENCE)


@pytest.mark.parametrize("size", [5, 100_000])
def test_a_receiver_that_hangs_up_is_news_for_the_sender(size: int) -> None:
    with a_line() as line:
        forth, back = line.ways
        forth.close(forth.drain)
        with suppress(BrokenPipeError):  # the rest of a large piece may meet the end already
            forth.write(b"x" * size)
        eventually(lambda: line.ended == [0])  # told when both descriptors are closed
        assert forth.pump.outcome == BROKEN
        with pytest.raises(BrokenPipeError):
            forth.write(b"x")
        back.write(b"still here")
        assert back.read(10) == b"still here"


def test_a_direction_that_is_cut_leaves_the_other_alone() -> None:
    with a_line() as line:
        forth, back = line.ways
        forth.pump.cut()
        assert forth.read(1) == b""
        back.write(b"still here")
        assert back.read(10) == b"still here"
        back.write(b"and on")
        assert back.read(6) == b"and on"
        eventually(lambda: forth.pump.outcome == CUT)


def test_a_reply_is_never_recorded_before_its_request() -> None:
    with a_line() as line:
        forth, back = line.ways
        for _ in range(200):
            forth.write(b"?")
            assert forth.read(1) == b"?"
            back.write(b"!")
            assert back.read(1) == b"!"
        batch, _ = line.recorder.take()
        assert [channel for _, kind, channel, _ in batch if kind == "chunk"] == [0, 1] * 200
        times = [at for at, *_ in batch]
        assert times == sorted(times)


def test_it_is_for_pipes_and_sockets_only(tmp_path: os.PathLike[str]) -> None:
    reading, writing = os.pipe()
    file = os.open(os.path.join(tmp_path, "file"), os.O_RDWR | os.O_CREAT)
    null = os.open(os.devnull, os.O_RDWR)
    assert suits(reading, writing)
    assert not suits(reading, file)
    assert not suits(null, writing)
    for descriptor in (reading, writing, file, null):
        os.close(descriptor)
    assert not suits(reading)
