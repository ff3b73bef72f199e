"""What the command line of `mcpsniff play` says, and what the keys mean."""

import pytest

from mcpsniff.errors import UsageError
from mcpsniff.replay.play.bounds import Bound, check_order, read_bound
from mcpsniff.replay.play.clock import NO_WAITING
from mcpsniff.replay.play.keys import FASTER, FINDING, HELP, PAUSE, QUIT, SLOWER, STEP, Keys
from mcpsniff.replay.play.options import read_idle, read_speed

STARTED = "2026-11-29T10:00:00.000000Z"
S = 1_000_000


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        (None, None),
        ("10s", Bound(t=10 * S)),
        ("t:10s", Bound(t=10 * S)),
        ("500ms", Bound(t=S // 2)),
        ("1m20s", Bound(t=80 * S)),
        ("1h1m1.5s", Bound(t=3661 * S + S // 2)),
        ("12.345", Bound(t=12_345_000)),
        ("1:02.345", Bound(t=62_345_000)),
        ("10:00:05", Bound(t=36_005 * S)),
        ("10:00:05Z", Bound(t=5 * S)),
        ("2026-11-29T11:00:05+01:00", Bound(t=5 * S)),
        ("#12", Bound(n=12)),
        ("n:12", Bound(n=12)),
    ],
)
def test_moments_and_numbers(text: str | None, bound: Bound | None) -> None:
    assert read_bound(text, STARTED, "--from") == bound


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "nothing is said"),
        ("t:", "nothing is said"),
        ("#", "is no whole number"),
        ("#1x", "1x is no whole number"),
        ("soon", "soon does not begin with a number"),
        ("10x", "there is no unit x"),
        ("1m20x", "there is no unit x"),
        ("1m20", "does not begin with a number"),
        ("-5s", "does not begin with a number"),
        ("1:2:3:4", "is no moment"),
        ("9" * 30 + "s", "is longer than"),
        ("\x1b[31m10s", "does not begin"),
    ],
)
def test_what_cannot_be_read_is_said_with_what_can(text: str, said: str) -> None:
    with pytest.raises(UsageError) as wrong:
        read_bound(text, STARTED, "--to")
    assert str(wrong.value).startswith("--to needs a moment such as 10s or 1:02.345, or a number such as '#12': ")
    assert said in str(wrong.value)


def test_an_end_before_the_beginning() -> None:
    check_order(None, Bound(t=1))
    check_order(Bound(t=5), Bound(t=5))
    check_order(Bound(t=5 * S), Bound(n=1))
    with pytest.raises(UsageError, match=r"--to 1\.000 lies before --from 1:05\.000"):
        check_order(Bound(t=65 * S), Bound(t=S))
    with pytest.raises(UsageError, match="--to #3 lies before --from #4"):
        check_order(Bound(n=4), Bound(n=3))


@pytest.mark.parametrize(
    ("text", "speed"),
    [("1", 1.0), ("x4", 4.0), ("4x", 4.0), ("0.5", 0.5), (".5", 0.5), ("max", NO_WAITING), ("0", NO_WAITING)],
)
def test_speeds(text: str, speed: float) -> None:
    assert read_speed(text) == speed


@pytest.mark.parametrize("text", ["", "fast", "-1", "nan", "inf", "1e3", "1_0", "1e-9", "٣", "0.0000001", "9" * 400])
def test_what_is_no_speed(text: str) -> None:
    with pytest.raises(UsageError, match="--speed"):
        read_speed(text)


@pytest.mark.parametrize(
    ("text", "us"),
    [("2", 2 * S), ("0.5", S // 2), ("0", 0), ("2s", 2 * S), ("500ms", S // 2), ("1m", 60 * S), ("none", None)],
)
def test_idle_limits(text: str, us: int | None) -> None:
    assert read_idle(text) == us


@pytest.mark.parametrize("text", ["", "-1", "long", "2x", "nan", "1e3"])
def test_what_is_no_idle_limit(text: str) -> None:
    with pytest.raises(UsageError, match="--idle-limit"):
        read_idle(text)


def test_keys() -> None:
    assert Keys().feed(b" .n+=-?hqQ\x04") == [
        PAUSE,
        STEP,
        FINDING,
        FASTER,
        FASTER,
        SLOWER,
        HELP,
        HELP,
        QUIT,
        QUIT,
        QUIT,
    ]
    assert Keys().feed(b"\x1b[C\x1bOC\x1b[D\x1b[1;5C\x1bn\xff\x00xn") == [STEP, STEP, FINDING]


def test_a_key_may_come_in_pieces() -> None:
    for whole, meant in ((b"\x1b[C", STEP), (b"\x1bOC", STEP)):
        for cut in range(1, len(whole)):
            keys = Keys()
            assert [keys.feed(whole[:cut]), keys.feed(whole[cut:])] == [[], [meant]]


def test_a_sequence_without_an_end_is_not_kept_for_ever() -> None:
    keys = Keys()
    for _ in range(100):
        assert keys.feed(b"\x1b[" + b"1;" * 40) == []
    assert keys.feed(b" ") == [PAUSE]
