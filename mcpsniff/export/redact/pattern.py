"""The user's patterns, tried in a process of their own that is ended when one of them takes too long.

Python's expressions go back over a text as often as they like, and nothing stops one from within its process: it holds
the interpreter's lock and sees no signal handler. An engine without going back (google-re2) or one with a time limit
(regex) would be a package more, for expressions that mean something else there; a process needs none.
"""

import contextlib
import marshal
import os
import re
import select
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Final

from mcpsniff.errors import CaptureError

SECONDS: Final = 1.0
"""For one field, all patterns together."""
LONGEST: Final = 4 << 20
"""Bytes of the longest field on which patterns are tried; a longer one counts as one that took too long."""
MOST_CUT: Final = 30
"""Fields that may take too long; beyond, the patterns are not fit for use."""

_SIZE: Final = 8
_START: Final = "import sys; sys.path[:] = {path!r}; from mcpsniff.export.redact.pattern import serve; serve()"
"""With -P and our own path: what lies in the current folder is not loaded."""


class Patterns:
    """Tries ``patterns`` on fields. A context manager: the process ends with it."""

    def __init__(self, patterns: Sequence[str], *, seconds: float = SECONDS) -> None:
        self._patterns = list(patterns)
        self._seconds = seconds
        self._process: subprocess.Popen[bytes] | None = None
        self.hits: set[int] = set()
        """The numbers of those that matched something."""
        self.cut = 0
        """Fields on which they took too long."""

    def __enter__(self) -> "Patterns":
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def find(self, text: bytes) -> list[tuple[int, int]] | None:
        """Where in ``text`` the patterns match; None if that took too long. Raises CaptureError if it always does."""
        if len(text) <= LONGEST:
            found = self._asked(text)
            if found is not None:
                return found
        self.cut += 1
        if self.cut > MOST_CUT:
            raise CaptureError(
                f"--pattern took more than {self._seconds:g} s on each of {MOST_CUT} fields; nothing was written"
            )
        return None

    def _asked(self, text: bytes) -> list[tuple[int, int]] | None:
        process = self._process = self._process or self._begin()
        assert process.stdin is not None
        assert process.stdout is not None
        deadline = time.monotonic() + self._seconds
        try:
            _put(process.stdin.fileno(), marshal.dumps(text))
            answer = _take(process.stdout.fileno(), deadline)
        except OSError:
            answer = None
        if answer is None:
            self._end()
            return None
        found: list[tuple[int, int, int]] = marshal.loads(answer)  # noqa: S302 - our own process wrote it
        self.hits.update(number for _, _, number in found)
        return [(start, stop) for start, stop, _ in found]

    def _begin(self) -> "subprocess.Popen[bytes]":
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", _START.format(path=sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(OSError):
            _put(process.stdin.fileno(), marshal.dumps(self._patterns))
            if _take(process.stdout.fileno(), time.monotonic() + 30) is not None:
                return process
        process.kill()
        process.wait()
        raise CaptureError("the process that is to try --pattern did not start")

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


def serve() -> None:
    """What the other process does: take the patterns, then texts, one after the other, and say where they match."""
    with contextlib.suppress(KeyboardInterrupt, BrokenPipeError):
        words = _take(0, None)
        if words is None:
            return
        patterns = [re.compile(pattern) for pattern in marshal.loads(words)]  # noqa: S302 - from the process that began us
        _put(1, marshal.dumps(None))
        while (asked := _take(0, None)) is not None:
            text = marshal.loads(asked).decode("utf-8", "surrogateescape")  # noqa: S302 - likewise
            _put(1, marshal.dumps(_places(patterns, text)))


def _places(patterns: list[re.Pattern[str]], text: str) -> list[tuple[int, int, int]]:
    """Where they match, in bytes, and which pattern does; of one with a group called ``secret``, where that is."""
    found = []
    for number, pattern in enumerate(patterns):
        group: int | str = "secret" if "secret" in pattern.groupindex else 0
        done = size = 0
        for match in pattern.finditer(text):
            start, stop = match.span(group)
            if start < done or start == stop:
                continue
            size += len(text[done:start].encode("utf-8", "surrogateescape"))
            length = len(text[start:stop].encode("utf-8", "surrogateescape"))
            found.append((size, size + length, number))
            size, done = size + length, stop
    return found


def _put(descriptor: int, data: bytes) -> None:
    rest = memoryview(len(data).to_bytes(_SIZE) + data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _take(descriptor: int, deadline: float | None) -> bytes | None:
    """The next message; None at the end, or when the time is over."""
    size = _exactly(descriptor, _SIZE, deadline)
    return None if size is None else _exactly(descriptor, int.from_bytes(size), deadline)


def _exactly(descriptor: int, size: int, deadline: float | None) -> bytes | None:
    data = bytearray()
    while len(data) < size:
        if deadline is not None:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([descriptor], [], [], left)[0]:
                return None
        block = os.read(descriptor, min(size - len(data), 1 << 20))
        if not block:
            return None
        data += block
    return bytes(data)
