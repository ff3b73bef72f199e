"""The clock of `mcpsniff play`: which moment of the recording it is, and when the next row is due. Nobody sleeps."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpsniff.replay.play.clock import BEHIND, FASTEST, NO_WAITING, SLOWEST, Timeline

S = 1_000_000


def test_a_row_is_due_when_its_gap_has_passed() -> None:
    timeline = Timeline(1.0, None, now=100.0)
    timeline.aim(3 * S, 100.0)
    assert timeline.left(100.0) == pytest.approx(3.0)
    assert not timeline.is_due(102.9)
    assert timeline.position(101.0) == S
    assert timeline.is_due(103.0)
    assert timeline.position(110.0) == 3 * S, "time stands at the row until it is shown"


@pytest.mark.parametrize(("speed", "seconds"), [(0.5, 6.0), (1.0, 3.0), (10.0, 0.3), (NO_WAITING, 0.0)])
def test_speed_divides_the_gap(speed: float, seconds: float) -> None:
    timeline = Timeline(speed, None, now=0.0)
    timeline.aim(3 * S, 0.0)
    assert timeline.left(0.0) == pytest.approx(seconds)
    assert timeline.is_due(seconds)


def test_a_long_gap_is_cut_before_it_is_divided_and_its_clock_runs_evenly() -> None:
    timeline = Timeline(2.0, 2 * S, now=0.0)
    timeline.aim(60 * S, 0.0)
    assert timeline.cut_us == 60 * S
    assert timeline.left(0.0) == pytest.approx(1.0)
    assert timeline.position(0.5) == 30 * S
    timeline.arrive(1.0)
    timeline.aim(61 * S, 1.0)
    assert timeline.cut_us is None
    assert timeline.left(1.0) == pytest.approx(0.5)


def test_what_came_late_is_caught_up_only_so_far() -> None:
    timeline = Timeline(1.0, None, now=0.0)
    timeline.aim(S, 0.0)
    timeline.arrive(1.1)
    timeline.aim(2 * S, 1.1)
    assert timeline.left(1.1) == pytest.approx(0.9), "a tenth of a second late"
    timeline.arrive(60.0)
    timeline.aim(4 * S, 60.0)
    assert timeline.left(60.0) == pytest.approx(2.0 - BEHIND), "a terminal that stood still is no reason to rush"


def test_a_pause_stops_both_clocks() -> None:
    timeline = Timeline(1.0, None, now=0.0)
    timeline.aim(3 * S, 0.0)
    timeline.pause(1.0)
    assert timeline.is_paused
    assert timeline.left(50.0) == math.inf
    assert timeline.position(50.0) == S
    assert not timeline.is_due(50.0)
    timeline.resume(100.0)
    timeline.resume(101.0)
    assert timeline.left(101.0) == pytest.approx(1.0)
    timeline.pause(101.5)
    timeline.pause(500.0)
    assert timeline.position(500.0) == 2.5 * S


def test_speed_changes_within_a_gap_from_where_it_is() -> None:
    timeline = Timeline(1.0, None, now=0.0)
    timeline.aim(10 * S, 0.0)
    timeline.set_speed(2.0, 4.0)
    assert timeline.position(4.0) == 4 * S
    assert timeline.left(4.0) == pytest.approx(3.0)
    timeline.pause(5.0)
    timeline.set_speed(0.5, 6.0)
    timeline.resume(7.0)
    assert timeline.position(7.0) == 6 * S
    assert timeline.left(7.0) == pytest.approx(8.0)


def test_faster_and_slower_double_and_halve_between_the_ends() -> None:
    timeline = Timeline(3.0, None, now=0.0)
    timeline.faster(0.0)
    assert timeline.speed == 6.0
    for _ in range(20):
        timeline.faster(0.0)
    assert timeline.speed == NO_WAITING
    timeline.slower(0.0)
    assert timeline.speed == FASTEST
    for _ in range(20):
        timeline.slower(0.0)
    assert timeline.speed == SLOWEST


def test_a_row_that_is_taken_early_moves_the_time_to_it() -> None:
    timeline = Timeline(1.0, None, now=0.0)
    timeline.aim(10 * S, 0.0)
    timeline.pause(1.0)
    timeline.arrive(2.0)
    assert timeline.position(2.0) == 10 * S
    timeline.aim(12 * S, 2.0)
    timeline.resume(3.0)
    assert timeline.left(3.0) == pytest.approx(2.0)


def test_a_time_before_the_latest_does_not_wait() -> None:
    timeline = Timeline(1.0, None, now=0.0)
    timeline.aim(5 * S, 0.0)
    timeline.arrive(5.0)
    timeline.aim(4 * S, 5.0)
    assert timeline.is_due(5.0)
    assert timeline.position(5.0) == 5 * S


@given(
    st.lists(st.integers(0, 10**10), min_size=1, max_size=20),
    st.sampled_from([0.1, 1.0, 7.0]),
    st.sampled_from([None, 1, 2 * S]),
)
def test_however_it_is_looked_at_each_row_comes_in_its_time(gaps: list[int], speed: float, idle_us: int | None) -> None:
    timeline, now, t = Timeline(speed, idle_us, now=0.0), 0.0, 0
    for gap in gaps:
        t += gap
        timeline.aim(t, now)
        wait = timeline.left(now)
        assert wait == pytest.approx((gap if idle_us is None else min(gap, idle_us)) / S / speed, abs=1e-4)
        before = timeline.position(now)
        assert before <= timeline.position(now + wait / 2) <= t
        now += wait
        assert timeline.is_due(now + 1e-3)
        timeline.arrive(now)
        assert timeline.position(now) == t
