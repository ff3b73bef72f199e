"""Finished ids are remembered in bounded memory."""

from hypothesis import given
from hypothesis import strategies as st

from mcpsniff.protocol.finished import Finished, IntegerRanges


@given(st.lists(st.integers(-30, 30)))
def test_ranges_are_a_set(numbers: list[int]) -> None:
    ranges = IntegerRanges()
    for number in numbers:
        ranges.add(number)

    assert [number in ranges for number in range(-32, 33)] == [number in set(numbers) for number in range(-32, 33)]


def test_a_session_that_counts_upwards_needs_one_range() -> None:
    ranges = IntegerRanges()
    for number in range(100_000):
        ranges.add(number)

    assert len(ranges) == 1


def test_scattered_integers_and_other_ids_stay_within_the_window() -> None:
    finished: Finished[int | str, str] = Finished(window=10)
    for number in range(0, 1000, 2):
        finished.add(number, "number")
        finished.add(f"s{number}", "string")

    assert len(finished._integers) == 10
    assert "s0" not in finished
    assert 0 not in finished
    assert finished.get("s998") == "string"
    assert 998 in finished
