"""A terminal with the prompt for held messages at its foot: alone, or below the live view of a recorder."""

import os
import select
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import Final

from mcpsniff.capture.labels import shown
from mcpsniff.cli.attach_keys import Keys
from mcpsniff.cli.attach_link import EndedError, Link
from mcpsniff.cli.attach_prompt import HEIGHT, Prompt, greeting
from mcpsniff.cli.resend_signals import Signals
from mcpsniff.cli.screen import Screen
from mcpsniff.errors import UsageError
from mcpsniff.transcript.layout import wrapped
from mcpsniff.transcript.pretty import Line

TICK: Final = 0.1
"""Seconds between two states of the running clocks."""


class DeskScreen(Screen):
    """A screen whose foot ends with what ``below`` gives for a width and a height."""

    def __init__(self) -> None:
        super().__init__()
        self.below: Callable[[int, int], list[Line]] = lambda _width, _height: []

    @property
    def foot_size(self) -> tuple[int, int]:
        """Cells and lines that there are above it."""
        width, height = super().foot_size
        return width, height - len(self._below())

    def flush(self, foot: list[Line] | None = None) -> None:
        """As of a screen, with its own foot below ``foot``. Raises OSError."""
        below = self._below() if self.has_foot else []
        super().flush([*(foot or ()), *below] or None)

    def _below(self) -> list[Line]:
        width, height = super().foot_size
        return self.below(width, min(height, HEIGHT))


class Attached:
    """A prompt on a screen, and the keys for it; to be entered, and left before the terminal is somebody else's."""

    def __init__(self, screen: DeskScreen, link: Link, terminal: int, *, always: bool) -> None:
        """``terminal`` is its descriptor. With ``always`` there is a prompt also where nothing is held."""
        self._screen = screen
        self._link = link
        self._keys = Keys(terminal)
        self._signals = Signals()
        self.prompt = Prompt(link, screen.print, lambda: screen.width, self._edit)
        self._always = always
        self._stack = ExitStack()

    def __enter__(self) -> "Attached":
        """Begin to read keys; TERM and HUP put the terminal in order before they end the process."""
        self._stack.enter_context(self._signals)
        self._stack.callback(self._link.close)
        self._stack.enter_context(self._keys)
        self._stack.callback(self._leave)
        self._screen.below = lambda width, height: self.prompt.foot(width, height, always=self._always)
        if not self._always:
            self.prompt.say(f"break points: {shown('  '.join(self._link.session['breaks']))} (h for help)")
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def wait(self, seconds: float) -> bool:
        """Wait for keys and news so long at most, and see to them; return True if there were any."""
        if self.is_over:
            self._stack.close()
            time.sleep(seconds)
            return False
        sources = [] if self._link.is_over else [self._link.fileno()]
        if self._keys.is_ours:
            sources.append(self._keys.descriptor)
        ready, _, _ = select.select(sources, [], [], seconds)
        if ready:
            self.prompt.look()
            self.prompt.type(self._keys.read())
            self.prompt.look()
        return bool(ready)

    @property
    def is_over(self) -> bool:
        """True once there is nothing more to decide, or nobody who does."""
        return self._link.is_over or self.prompt.is_left or self._keys.is_gone

    def _edit(self, words: list[str]) -> int:
        self._screen.below = lambda _width, _height: []
        self._screen.flush()
        try:
            return self._keys.run(words, self._signals)
        finally:
            self._screen.below = lambda width, height: self.prompt.foot(width, height, always=self._always)

    def _leave(self) -> None:
        self._screen.below = lambda _width, _height: []
        if self.prompt.is_left and not self._always:
            self.prompt.say(f"detached: mcpsniff attach {self._link.session['pid']} attaches again")
        self.prompt.close()
        with suppress(OSError):
            self._screen.flush()


def converse(link: Link) -> None:
    """Let the user decide about what is held, until he leaves or the session ends. Raises UsageError."""
    screen = DeskScreen()
    if not (sys.stdin.isatty() and screen.has_foot):
        raise UsageError("the prompt needs a terminal; --list, --pass and the other options do not")
    for line in wrapped(greeting(link), screen.width):
        screen.print([("remark", line)])
    with Attached(screen, link, 0, always=True) as attached:
        try:
            while not attached.is_over:
                screen.flush()
                attached.wait(TICK)
        except KeyboardInterrupt:
            return
    if link.is_over:
        screen.print([("remark", "the session has ended")])
        screen.flush()


def beside(screen: DeskScreen, path: str) -> Attached | None:
    """The prompt for the desk at ``path``, below a view on ``screen``; None if there can be none."""
    if not screen.has_foot:
        return None
    try:
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return Attached(screen, Link(path), terminal, always=False)
    except (OSError, EndedError, ValueError, KeyError):
        os.close(terminal)
        return None
