"""Live is offline on a growing file: whatever the growth and the looks at the clock, the events are the same."""

import os
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from mcpsniff.capture.follower import Follower
from mcpsniff.capture.reader import open_capture
from mcpsniff.capture.records import Record
from mcpsniff.capture.writer import CaptureWriter
from mcpsniff.transcript.filter import FilteredSession, compile_filter
from mcpsniff.transcript.jsonl import JsonLines
from mcpsniff.transcript.live.session import LAG_US, Facts, LiveSession
from mcpsniff.transcript.session import Session
from tests.capture.capture_files import HEADER, storable
from tests.filter.sample_edited import SAMPLE as EDITED
from tests.filter.sample_http import DIALOGUE
from tests.transcript.http_sessions import TROUBLE, with_other_reads
from tests.transcript.http_sessions import records as over_http
from tests.transcript.test_laws import CHUNKS, ENDS, made

GROWTH = st.tuples(
    st.lists(st.integers(0, 5000), min_size=1, max_size=8), st.lists(st.floats(0, 1), min_size=1, max_size=8)
)
"""Where what is written is cut, and when the clock is looked at between two records."""
PAUSES = st.lists(st.sampled_from([0, 0, 1000, 2_500_000, 61_000_000]), min_size=1, max_size=8)


def stretched(records: list[Record], pauses: list[int]) -> list[Record]:
    """The records, some of them so much later that a deadline passes before them."""
    out, t = [], 0
    for number, record in enumerate(records):
        t += pauses[number % len(pauses)] if number > 2 else 0
        out.append(record._replace(t=record.t + t))
    return out


def pieces_of(records: list[Record], folder: Path, limit: int | None, cuts: list[int]) -> list[tuple[Path, bytes]]:
    """What a recorder writes, in the order in which it does and cut where it may be: (file, bytes)."""
    paths: dict[int, Path] = {}
    order: list[tuple[Path, bytes]] = []

    def write(descriptor: int, block: bytes) -> int:
        order.append((paths[descriptor], bytes(block)))
        return len(block)

    def open_part(_path: str, part: int) -> tuple[int, str]:
        descriptor = os.open(os.devnull, os.O_WRONLY)
        paths[descriptor] = folder / ("a.mcpcap" if part == 1 else f"a.{part:04}.mcpcap")
        return descriptor, str(paths[descriptor])

    writer = CaptureWriter(open_part("", 1)[0], "a.mcpcap", HEADER, part_limit=limit, write=write, open_part=open_part)
    for record in records:
        writer.append([record])
    writer.close()
    pieces = []
    for number, (path, block) in enumerate(order):
        cut = cuts[number % len(cuts)] % (len(block) + 1)
        pieces += [(path, piece) for piece in (block[:cut], block[cut:]) if piece]
    return pieces


class Tailing:
    """Follows the capture in a folder, and looks at the clock at odd times, never ahead of what was written."""

    def __init__(self, path: Path, looks: list[float], expression: str | None) -> None:
        self.events: list[object] = []
        self._path = path
        self._follower = Follower(str(path))
        self._session: LiveSession | None = None
        self._looks = looks
        self._only = None if expression is None else compile_filter(expression)
        self._t = 0
        self._count = 0

    def step(self, next_t: int) -> None:
        """Read all there is; then it is some time before ``next_t``, when the next record will come."""
        while records := self._follower.poll():
            for record in records:
                self.events += self._begun().feed(record).shown
                self._t = record.t
        if self._follower.header is not None:
            look = self._looks[self._count % len(self._looks)]
            self._count += 1
            now = int(self._t + look * max(next_t - self._t, 0))
            self.events += self._begun().advance(now + LAG_US).shown

    def finish(self) -> None:
        for record in self._follower.finish():
            self.events += self._begun().feed(record).shown
        self.events += self._begun().finish().shown

    def _begun(self) -> LiveSession:
        if self._session is None:
            assert self._follower.header is not None
            facts = Facts(self._follower.header, str(self._path), self._follower.joined_late, self._follower.damage)
            self._session = LiveSession(facts, "", self._only)
        return self._session


def tailed(pieces: list[tuple[Path, bytes]], path: Path, looks: list[float], expression: str | None) -> list[object]:
    """The events of a capture that grows by ``pieces``."""
    path.touch()
    tail = Tailing(path, looks, expression)
    for index, (file, piece) in enumerate(pieces):
        with file.open("ab") as stream:
            stream.write(piece)
        rest = b"".join(data for other, data in pieces[index + 1 :] if other == file)
        tail.step(next_time(piece, rest, tail._t))
    tail.step(tail._t)
    tail.finish()
    return tail.events


def next_time(piece: bytes, rest: bytes, t: int) -> int:
    """When the record comes that is not whole yet, as far as the bytes tell."""
    line = rest if piece.endswith(b"\n") else piece.rpartition(b"\n")[2] + rest
    head = line[1:].partition(b",")[0]
    return int(head) if line[:1] == b"[" and head.isdigit() else t


@given(
    CHUNKS,
    ENDS,
    PAUSES,
    GROWTH,
    st.sampled_from([None, 300, 2000]),
)
@settings(max_examples=120, deadline=None)
def test_a_followed_capture_gives_the_events_of_the_finished_one(
    chunks: list, ends: list, pauses: list[int], growth: tuple, limit: int | None
) -> None:
    cuts, looks = growth
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pieces = pieces_of(stretched(made(chunks, ends), pauses), folder, limit, cuts)
        lines = JsonLines(payload=True)
        live = lines.lines(tailed(pieces, folder / "a.mcpcap", looks, None))
        saved = b"".join(lines.lines(events) for events in Session(open_capture(str(folder / "a.mcpcap"))).events())
        assert live.splitlines() == saved.splitlines()


@given(
    CHUNKS,
    ENDS,
    PAUSES,
    GROWTH,
    st.sampled_from(["kind:request", "severity:>=warning", "latency:>500ms", "not tool:add", "code:MCP41"]),
)
@settings(max_examples=60, deadline=None)
def test_a_filter_shows_the_same_live_in_some_order(
    chunks: list, ends: list, pauses: list[int], growth: tuple, expression: str
) -> None:
    cuts, looks = growth
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pieces = pieces_of(stretched(made(chunks, ends), pauses), folder, None, cuts)
        lines = JsonLines(payload=True)
        live = lines.lines(tailed(pieces, folder / "a.mcpcap", looks, expression))
        session = FilteredSession(open_capture(str(folder / "a.mcpcap")), compile_filter(expression))
        saved = b"".join(lines.lines(events) for events in session.events())
        assert sorted(live.splitlines()) == sorted(saved.splitlines())


READS = st.lists(st.integers(0, 400), min_size=1, max_size=6)
"""Where the reads of a connection are cut."""
OVER_HTTP = st.sampled_from([TROUBLE, DIALOGUE])
TERMS = ["status:4xx", "http:GET", "stream:resumed", "session:1868*", "tool:echo", "severity:>=warning", "text:mcp"]


@given(OVER_HTTP, READS, PAUSES, GROWTH, st.sampled_from([None, 2000]))
@settings(max_examples=12, deadline=None)
def test_a_followed_capture_of_http_gives_the_events_of_the_finished_one(
    dialogue: str, reads: list[int], pauses: list[int], growth: tuple, limit: int | None
) -> None:
    cuts, looks = growth
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        said = stretched(with_other_reads(over_http(dialogue), reads), pauses)
        pieces = pieces_of([storable(record) for record in said], folder, limit, cuts)
        lines = JsonLines(payload=True)
        live = lines.lines(tailed(pieces, folder / "a.mcpcap", looks, None))
        saved = b"".join(lines.lines(events) for events in Session(open_capture(str(folder / "a.mcpcap"))).events())
        assert live.splitlines() == saved.splitlines()


@given(OVER_HTTP, READS, PAUSES, st.sampled_from(TERMS), st.sampled_from(["", "not kind:http", "not state:open"]))
@settings(max_examples=40, deadline=None)
def test_a_filter_shows_the_same_of_http_live_in_some_order(
    dialogue: str, reads: list[int], pauses: list[int], term: str, more: str
) -> None:
    expression = f"{term} {more}".strip()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        said = stretched(with_other_reads(over_http(dialogue), reads), pauses)
        pieces = pieces_of([storable(record) for record in said], folder, None, [1 << 20])
        lines = JsonLines(payload=True)
        live = lines.lines(tailed(pieces, folder / "a.mcpcap", [0.5], expression))
        session = FilteredSession(open_capture(str(folder / "a.mcpcap")), compile_filter(expression))
        saved = b"".join(lines.lines(events) for events in session.events())
        assert sorted(live.splitlines()) == sorted(saved.splitlines())


BY = ["has:edit", "by:*", "kind:rewrite", "not has:edit", "blame:mcpsniff", "method:ping", "state:errored"]


@given(PAUSES, GROWTH, st.sampled_from([None, *BY]))
@settings(max_examples=60, deadline=None)
def test_a_followed_capture_of_an_edited_session_gives_the_same_events(
    pauses: list[int], growth: tuple, expression: str | None
) -> None:
    cuts, looks = growth
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pieces = pieces_of([storable(one) for one in stretched(EDITED, pauses)], folder, None, cuts)
        lines = JsonLines(payload=True)
        live = lines.lines(tailed(pieces, folder / "a.mcpcap", looks, expression))
        opened = open_capture(str(folder / "a.mcpcap"))
        session = Session(opened) if expression is None else FilteredSession(opened, compile_filter(expression))
        saved = b"".join(lines.lines(events) for events in session.events())
        assert sorted(live.splitlines()) == sorted(saved.splitlines())


def test_the_law_sees_deadlines() -> None:
    said = made([(0, b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}\n', 5)], [])
    later = [*said, Record(70_000_000, "chunk", 2, b"x\n")]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        events = tailed(pieces_of(later, folder, None, [3]), folder / "a.mcpcap", [0.95], None)
    codes = [getattr(event, "code", type(event).__name__) for event in events]
    assert codes.index("MCP410") < codes.index("Stderr"), "the deadline passed before the next record came"
