"""Latency statistics in bounded memory: the first ones exactly, many of them as counts in logarithmic buckets."""

from math import log
from typing import Final

EXACT: Final = 200
"""Latencies up to which percentiles are exact."""
_GROWTH: Final = 1.016
_SCALE: Final = 1 / log(_GROWTH)


class Latencies:
    """The distribution of some latencies, in microseconds. Of many, percentiles are exact to within 1 %."""

    def __init__(self) -> None:
        self._first: list[int] = []
        self._buckets: dict[int, int] = {}
        self.count = 0
        self.largest = 0

    def add(self, us: int) -> None:
        """Count one latency."""
        if self.count < EXACT:
            self._first.append(us)
        bucket = round(log(us) * _SCALE) if us > 0 else -1
        self._buckets[bucket] = self._buckets.get(bucket, 0) + 1
        self.count += 1
        self.largest = max(self.largest, us)

    def percentile(self, percent: float) -> int:
        """The latency that ``percent`` per cent of all do not exceed (nearest rank); 0 when there are none."""
        rank = max(1, -(-self.count * percent // 100))
        if self.count <= EXACT:
            return sorted(self._first)[int(rank) - 1] if self._first else 0
        seen = 0
        for bucket in sorted(self._buckets):
            seen += self._buckets[bucket]
            if seen >= rank:
                return 0 if bucket < 0 else min(round(_GROWTH**bucket), self.largest)
        return 0
