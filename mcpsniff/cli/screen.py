"""Standard output for a view that goes on: lines, and on a terminal a foot below them that changes in place.

The cursor rests at the beginning of the foot. So clearing from there removes it, however the terminal laid it out anew
when it was resized. A pipe gets the lines alone, each group of them at once.
"""

import os
import select
import stat
import sys
from typing import Final

from mcpsniff.transcript.pretty import Line
from mcpsniff.transcript.safe import visible_json_lines
from mcpsniff.transcript.terminal import columns, printer, terminal
from mcpsniff.transcript.text import WIDTH

FOOT: Final = 8
"""Lines of the foot, at most."""

CLEAR: Final = "\r\x1b[J"


class Screen:
    """What is printed is shown by the next `flush`."""

    def __init__(self) -> None:
        self._stream = sys.stdout.buffer
        self._is_terminal = sys.stdout.isatty()
        self._text: list[str] = []
        self._bytes: list[bytes] = []
        self._foot = ""
        self.has_foot = False
        """True if a foot can be shown."""
        self._console = None
        if self._is_terminal:
            console = terminal()
            self.has_foot = not console.is_dumb_terminal
            if console.color_system and not os.environ.get("NO_COLOR"):
                self._console = console
                self._print_line = printer(console)
        self._poll = select.poll()
        if stat.S_ISFIFO(os.fstat(self._stream.fileno()).st_mode):
            self._poll.register(self._stream.fileno(), 0)

    @property
    def width(self) -> int:
        """Cells of a line, as it is now."""
        return columns() if self._is_terminal else WIDTH

    @property
    def foot_size(self) -> tuple[int, int]:
        """Cells and lines that a foot may have."""
        try:
            real = os.get_terminal_size(self._stream.fileno())
        except OSError:
            return 0, 0
        width = min(self.width, real.columns or self.width)
        return width - 1, max(min(FOOT, (real.lines or FOOT) - 2), 0)

    @property
    def is_closed(self) -> bool:
        """True if nobody reads the pipe any more into which we write."""
        return any(what & (select.POLLERR | select.POLLHUP) for _, what in self._poll.poll(0))

    def print(self, line: Line) -> None:
        """Take a line."""
        self._text.append(self._rendered(line))

    def write(self, data: bytes) -> None:
        """Take whole lines of JSON; a terminal gets them with escapes for what would act on it."""
        self._bytes.append(visible_json_lines(data) if self._is_terminal else data)

    def flush(self, foot: list[Line] | None = None) -> None:
        """Show what was printed, and below it ``foot`` in place of the one before. Raises OSError."""
        below = "\n".join(self._rendered(line).rstrip("\n") for line in foot or ())
        if not self._text and not self._bytes and below == self._foot:
            return
        text = (CLEAR if self._foot else "") + "".join(self._text)
        if below:
            lines = below.count("\n")
            text += below + (f"\x1b[{lines}A\r" if lines else "\r")
        data = text.encode(errors="backslashreplace") + b"".join(self._bytes)
        self._text.clear()
        self._bytes.clear()
        self._foot = below
        self._stream.write(data)
        self._stream.flush()

    def _rendered(self, line: Line) -> str:
        if self._console is None:
            return "".join(text for _, text in line).rstrip() + "\n"
        with self._console.capture() as captured:
            self._print_line(line)
        return captured.get()
