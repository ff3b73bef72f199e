"""The order of ends, as arithmetic."""

from signal import SIGKILL, SIGTERM
from typing import Any, cast

from mcpsniff.proxy.lastwords import COUNTING, LINGER, LOOK, PATIENCE, LastWords
from mcpsniff.proxy.shutdown import KILL_AFTER, ShutdownOrder


def test_after_a_hang_up_comes_term_then_kill() -> None:
    order = ShutdownOrder(10)
    assert order.next_at() == float("inf")
    order.hang_up(100)
    assert (order.next_at(), order.due(109.9)) == (110, [])
    assert order.due(110) == [SIGTERM]
    assert order.next_at() == 110 + KILL_AFTER
    assert order.due(112) == [SIGKILL]
    assert (order.next_at(), order.due(1000)) == (float("inf"), [])


def test_after_a_signal_comes_kill() -> None:
    order = ShutdownOrder(10)
    order.signalled(5)
    order.signalled(9)
    assert order.next_at() == 15
    assert order.due(15) == [SIGKILL]


def test_the_earliest_deadline_counts() -> None:
    order = ShutdownOrder(10)
    order.signalled(0)
    order.hang_up(5)
    assert order.due(10) == [SIGKILL]
    assert order.due(100) == []


def test_no_grace_is_immediate() -> None:
    order = ShutdownOrder(0)
    order.hang_up(3)
    assert order.due(3) == [SIGTERM]


def test_what_is_left_behind_has_its_own_order() -> None:
    order = ShutdownOrder(10)
    order.hang_up(0)
    order.left_behind(20)
    assert order.due(20) == [SIGTERM]
    assert order.due(20 + KILL_AFTER) == [SIGKILL]


class Stream:
    """A pump, as far as its last words go."""

    def __init__(self, *, ended: bool = False) -> None:
        self.outcome = "eof" if ended else None
        self.passed = 0
        self.waiting = 0

    def pending(self) -> int:
        return self.waiting


def last_words(stdout: Stream, stderr: Stream) -> LastWords:
    return LastWords(cast(Any, stdout), cast(Any, stderr), 0.0)


def looks(words: LastWords, limit: int = 1000) -> float | None:
    """Look as the session does; return when it was satisfied."""
    for _ in range(limit):
        if words.delivered(words.look_at):
            return words.look_at
    return None


def test_ended_streams_are_delivered_at_once() -> None:
    assert last_words(Stream(ended=True), Stream(ended=True)).delivered(0.0)


def test_idle_streams_are_not_waited_for() -> None:
    words = last_words(Stream(), Stream())
    assert not words.delivered(LINGER - 0.001)
    done = looks(words)
    assert done is not None
    assert done < LINGER + 2 * COUNTING * LOOK + 0.02


def test_what_was_written_is_waited_for_however_slow_the_client_is() -> None:
    stdout = Stream()
    stdout.waiting = 5000
    words = last_words(stdout, Stream(ended=True))
    assert looks(words) is None
    stdout.waiting, stdout.passed = 0, 5000
    assert looks(words) is not None


def test_what_others_still_write_is_not_waited_for() -> None:
    stdout = Stream()
    stdout.waiting = 5000
    words = last_words(stdout, Stream(ended=True))
    for _ in range(COUNTING):
        assert not words.delivered(words.look_at)
    stdout.passed = 5000  # as much as was there; and there is more, all the time
    assert looks(words) is not None


def test_bytes_that_change_hands_during_a_look_are_not_missed() -> None:
    stdout = Stream()  # the first look sees nothing: the pump has read them but not yet said so
    words = last_words(stdout, Stream(ended=True))
    assert not words.delivered(words.look_at)
    stdout.waiting = 5000
    assert looks(words, 50) is None


def test_unread_stderr_is_waited_for_only_while_it_moves() -> None:
    stderr = Stream()
    stderr.waiting = 5000
    words = last_words(Stream(ended=True), stderr)
    for second in range(10):
        stderr.passed += 1
        assert not words.delivered(words.look_at + second)
    done = looks(words)
    assert done is not None
    assert done > PATIENCE
