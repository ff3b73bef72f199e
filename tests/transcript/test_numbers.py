"""Durations, sizes, moments; latency statistics against the exact ones."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpsniff.transcript.latency import EXACT, Latencies
from mcpsniff.transcript.units import count, duration, moment, size


@pytest.mark.parametrize(
    ("us", "shown"),
    [
        (0, "0 µs"),
        (85, "85 µs"),
        (999, "999 µs"),
        (1000, "1.0 ms"),
        (1249, "1.2 ms"),
        (99_949, "99.9 ms"),
        (340_000, "340 ms"),
        (999_499, "999 ms"),
        (999_500, "1.0 s"),
        (3_400_000, "3.4 s"),
        (59_949_999, "59.9 s"),
        (59_950_000, "1 min 0 s"),
        (125_000_000, "2 min 5 s"),
        (10_920_000_000, "3 h 2 min"),
        (-1500, "-1.5 ms"),
    ],
)
def test_duration(us: int, shown: str) -> None:
    assert duration(us) == shown


@pytest.mark.parametrize(
    ("us", "shown"),
    [(0, "0.000"), (12_345_678, "12.345"), (62_345_000, "1:02.345"), (3_662_345_000, "1:01:02.345")],
)
def test_moment(us: int, shown: str) -> None:
    assert moment(us) == shown


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 KB"),
        (9949, "9.9 KB"),
        (9950, "10 KB"),
        (999499, "999 KB"),
        (999500, "1.0 MB"),
        (16000000, "16 MB"),
        (10**30, "1000000000000 EB"),
    ],
)
def test_size(number: int, shown: str) -> None:
    assert size(number) == shown


def test_count() -> None:
    assert (count(1, "batch", "batches"), count(2000, "batch", "batches"), count(0, "row")) == (
        "1 batch",
        "2,000 batches",
        "0 rows",
    )


@given(st.lists(st.integers(0, 10**10), min_size=1, max_size=EXACT + 100), st.sampled_from([50, 95, 100]))
def test_percentiles(values: list[int], percent: int) -> None:
    latencies = Latencies()
    for value in values:
        latencies.add(value)
    exact = sorted(values)[max(1, -(-len(values) * percent // 100)) - 1]
    tolerance = 0 if len(values) <= EXACT else exact * 0.01 + 1
    assert abs(latencies.percentile(percent) - exact) <= tolerance
    assert latencies.percentile(percent) <= latencies.largest == max(values)


def test_memory_is_bounded() -> None:
    latencies = Latencies()
    for value in range(0, 10**6, 7):
        latencies.add(value)
    assert len(latencies._buckets) < 1000
    assert len(latencies._first) == EXACT
    assert Latencies().percentile(50) == 0
