"""What leaves instead of recorded bytes takes room in the recorder's queue, too, and is bounded like all else."""

import errno
from typing import Any

from mcpsniff.proxy.recorder import UNKEPT, Recorder
from mcpsniff.proxy.storing import ASIDE, Storing

DATA = "x" * 1000


class Writer:
    """A disk that takes everything, or nothing."""

    def __init__(self) -> None:
        self.records: list[Any] = []
        self.failure: Exception | None = None
        self.is_full = False

    def append(self, records: list[Any]) -> int:
        if self.is_full:
            self.failure = OSError(errno.ENOSPC, "No space left on device")
            return 0
        self.failure = None
        self.records += records
        return len(records)


def rewrite(recorder: Recorder, start: int, data: str | dict[str, str] = DATA) -> None:
    recorder.mark("rewrite", 0, {"start": start, "length": 0, "data": data, "by": "hook"})


def storing_of(recorder: Recorder) -> tuple[Storing, Writer]:
    writer = Writer()
    storing = Storing(recorder, lambda: writer, lambda _: None, lambda: 0.0)
    storing._writer = writer
    return storing, writer


def test_the_room_of_rewrites_is_taken_and_given_back() -> None:
    recorder = Recorder()
    storing, writer = storing_of(recorder)
    rewrite(recorder, 0)
    rewrite(recorder, 0, {"b64": "/w=="})
    assert recorder.waiting() > 1004
    storing._store(recorder.take()[0])
    assert recorder.waiting() == 0
    assert len(writer.records) == 2


def test_a_large_one_finds_room_and_the_next_ones_are_admitted_to_be_lost() -> None:
    recorder = Recorder(limit=500)
    for start in range(5):
        rewrite(recorder, start)
    recorder.mark("close", 0, {"how": "eof"})
    taken = [(kind, body.get("data") or body.get("text")) for _, kind, _, body in recorder.take()[0]]
    assert taken == [("rewrite", DATA), ("comment", UNKEPT), ("close", None)]
    assert recorder.waiting() >= 5000


def test_a_disk_that_refuses_leaves_a_bounded_number_of_them() -> None:
    recorder = Recorder()
    storing, writer = storing_of(recorder)
    writer.is_full = True
    count = 3 * ASIDE // len(DATA)
    for start in range(count):
        rewrite(recorder, start)
        storing._store(recorder.take()[0])
    kept = [body for _, kind, _, body in storing._backlog if kind == "rewrite"]
    assert sum(len(body["data"]) for body in kept) <= ASIDE
    assert storing.finish(0) >= (count - len(kept)) * len(DATA)
