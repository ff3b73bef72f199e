"""Which recorded bytes a frame came from, when its transport cuts the stream into pieces of its own.

An event stream arrives as the pieces of a chunked body, so that one event may lie in several runs of recorded bytes.
`ExactSpans` is for a body that is carried as it is, `CodedSpans` for one that had to be decoded first.
"""

from collections.abc import Sequence
from typing import Final, Protocol

from mcpsniff.wire.frames import Span

RUN_LIMIT: Final = 4096
"""Runs that one frame names; beyond, its last span also covers what lies between them, so that memory is bounded."""


class Spans(Protocol):
    """Follows a stream piece by piece: `begin`, then `take` and `skip` in order of position, then `end`."""

    def begin(self, spans: Sequence[Span], size: int) -> None:
        """The next ``size`` bytes of the stream came from these recorded bytes."""

    def take(self, stop: int) -> tuple[Span, ...]:
        """The spans of the frame that began where the last one ended, and ends before ``stop`` in this piece."""

    def skip(self, stop: int) -> None:
        """The bytes up to ``stop`` belong to no frame."""

    def end(self, *, inside: bool) -> None:
        """This piece is done; ``inside``: what is left of it belongs to a frame that has not ended yet."""

    def rest(self) -> tuple[Span, ...]:
        """The spans of the frame in which the stream ended."""


class ExactSpans:
    """Spans of a stream whose bytes are the recorded ones: each frame gets exactly its own."""

    def __init__(self) -> None:
        self._held: list[Span] = []
        self._runs: Sequence[Span] = ()
        self._run = 0
        self._run_start = 0
        self._done = 0

    def begin(self, spans: Sequence[Span], size: int) -> None:  # noqa: ARG002
        """See `Spans`."""
        self._runs = spans
        self._run = self._run_start = self._done = 0

    def take(self, stop: int) -> tuple[Span, ...]:
        """See `Spans`."""
        start, self._done = self._done, stop
        if len(self._runs) == 1:
            channel, first, _ = self._runs[0]
            cut: tuple[Span, ...] = (Span(channel, first + start, first + stop),)
        else:
            cut = self._cut(start, stop)
        if not self._held:
            return cut
        self._hold(cut)
        return self.rest()

    def skip(self, stop: int) -> None:
        """See `Spans`."""
        self._done = stop

    def end(self, *, inside: bool) -> None:
        """See `Spans`."""
        if not inside:
            return
        if len(self._runs) == 1:
            channel, first, last = self._runs[0]
            if first + self._done < last:
                _join(self._held, Span(channel, first + self._done, last))
            return
        size = self._run_start + sum(run.stop - run.start for run in self._runs[self._run :])
        self._hold(self._cut(self._done, size))

    def rest(self) -> tuple[Span, ...]:
        """See `Spans`."""
        held, self._held = tuple(self._held), []
        return held

    def _cut(self, start: int, stop: int) -> tuple[Span, ...]:
        """The recorded bytes behind this stretch of the piece; stretches are asked for in order."""
        found: list[Span] = []
        while start < stop and self._run < len(self._runs):
            channel, first, last = self._runs[self._run]
            run_stop = self._run_start + last - first
            if start < run_stop:
                moved = first - self._run_start
                _join(found, Span(channel, start + moved, min(stop, run_stop) + moved))
                start = min(stop, run_stop)
            if start == run_stop:
                self._run += 1
                self._run_start = run_stop
        return tuple(found)

    def _hold(self, runs: Sequence[Span]) -> None:
        for run in runs:
            _join(self._held, run)


class CodedSpans:
    """Spans of a decoded stream: each frame gets the coded bytes that were decoded while it arrived.

    Neighbours may share a span, since one piece of a coded body may hold the end of one event and the beginning of the
    next. Coded bytes after the last frame that decode to nothing (a checksum) belong to none.
    """

    def __init__(self) -> None:
        self._held: list[Span] = []
        self._current: list[Span] = []
        self._yielded = False

    def begin(self, spans: Sequence[Span], size: int) -> None:
        """See `Spans`."""
        if self._yielded:
            self._current = []
        for span in spans:
            _join(self._current, span)
        self._yielded = size > 0

    def take(self, stop: int) -> tuple[Span, ...]:  # noqa: ARG002
        """See `Spans`."""
        for span in self._current:
            _join(self._held, span)
        return self._release()

    def skip(self, stop: int) -> None:
        """See `Spans`: coded bytes cannot be told apart, so nothing is left out."""

    def end(self, *, inside: bool) -> None:
        """See `Spans`."""
        if inside and self._yielded:
            for span in self._current:
                _join(self._held, span)

    def rest(self) -> tuple[Span, ...]:
        """See `Spans`."""
        if not self._yielded:
            for span in self._current:
                _join(self._held, span)
        return self._release()

    def _release(self) -> tuple[Span, ...]:
        held, self._held = tuple(self._held), []
        return held


def _join(runs: list[Span], run: Span) -> None:
    """Append a run; one that continues the last one, or is one too many, makes the last one longer instead."""
    if runs and runs[-1].channel == run.channel and (runs[-1].stop == run.start or len(runs) >= RUN_LIMIT):
        runs[-1] = Span(run.channel, runs[-1].start, run.stop)
    else:
        runs.append(run)
