"""Programs of mcpsniff that run beside a test: started, asked where they listen, ended by their process id."""

import re
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Thread
from time import monotonic
from typing import IO, Final

from mcpsniff.errors import McpsniffError

START: Final = 30.0
"""Seconds that a program may take until it listens."""
END: Final = 10.0
"""Seconds that it may take to end when it is told to."""
_URL: Final = r"(https?://[^\s\"']+)"


class Program:
    """A process of mcpsniff that listens for HTTP. Raises McpsniffError if it ends, or says nothing, instead.

    It ends with ours, however that ends.
    """

    def __init__(self, words: Sequence[str], announced_by: str = "") -> None:
        """``announced_by`` are the words before its URL; without them it is a line of its standard output."""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "mcpsniff.testing.watched", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.said: list[str] = []
        """The lines that it wrote, to either stream."""
        self._lines: SimpleQueue[str | None] = SimpleQueue()
        """Those among which the one with the URL is; None for the end of a stream."""
        wanted = re.compile(re.escape(announced_by) + _URL)
        self._threads = [
            Thread(target=self._read, args=(stream, is_told_there), daemon=True)
            for stream, is_told_there in ((self.process.stdout, True), (self.process.stderr, bool(announced_by)))
            if stream is not None
        ]
        for thread in self._threads:
            thread.start()
        try:
            self.url = self._wait_for_url(wanted)
        except BaseException:
            self.end()
            raise

    def end(self) -> None:
        """Tell it to end, and wait for that; kill it if it does not."""
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.wait(END)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if self.process.stdin is not None:
            self.process.stdin.close()
        for thread in self._threads:
            thread.join(1)

    def _read(self, stream: IO[bytes], is_told_there: bool) -> None:
        with stream, suppress(OSError, ValueError):
            for line in stream:
                text = line.decode(errors="replace").rstrip()
                self.said.append(text)
                if is_told_there:
                    self._lines.put(text)
        self._lines.put(None)

    def _wait_for_url(self, wanted: re.Pattern[str]) -> str:
        deadline, ends = monotonic() + START, 0
        while ends < len(self._threads):
            try:
                line = self._lines.get(timeout=max(0.0, deadline - monotonic()))
            except Empty:
                break
            if line is None:
                ends += 1
            elif found := wanted.search(line):
                return found[1]
        why = f"nothing was heard of it for {START:g} s" if self.process.poll() is None else "it ended"
        raise McpsniffError("\n".join([f"mcpsniff does not listen: {why}", *(f"  {line}" for line in self.said)]))
