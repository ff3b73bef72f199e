"""Observing addons with `show` and `tail`, which tell them of what they show."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from io import TextIOBase
from typing import TYPE_CHECKING

from mcpsniff.capture.labels import shown
from mcpsniff.capture.reader import Capture
from mcpsniff.cli.output import note
from mcpsniff.cli.screen import Screen
from mcpsniff.hooks import strays
from mcpsniff.hooks.addon import Addon
from mcpsniff.hooks.events import EDITING, OBSERVING
from mcpsniff.hooks.loading import read
from mcpsniff.hooks.manager import Manager, Told
from mcpsniff.transcript.live.foot import Going
from mcpsniff.transcript.live.session import Step
from mcpsniff.transcript.live.view import View
from mcpsniff.transcript.safe import visible

if TYPE_CHECKING:
    from mcpsniff.transcript.filter import Filter


def observing(files: Sequence[str], settings: Sequence[str], say: Callable[[str], object]) -> list[Addon]:
    """Load addons where nothing can be edited, and say so of those that would. Raises UsageError."""
    strays.tell(say)
    addons = read(files, settings, say)
    for addon in addons:
        addon.configure(settings)
        if addon.has(EDITING):
            say(f"{shown(addon.path)}: mcp_edit is not called here, for all this has passed")
        elif not addon.has(OBSERVING):
            say(f"{shown(addon.path)} has no hook that would be called (mcpsniff addons --hooks lists them)")
    return addons


def tell_of(chosen: "Sequence[tuple[Capture, Filter | None]]", addons: Sequence[Addon]) -> None:
    """Tell addons of captures, one after another; of each what its filter leaves."""
    from mcpsniff.cli.show import running_for
    from mcpsniff.transcript.filter import FilteredSession
    from mcpsniff.transcript.session import Session

    manager = Manager(addons)
    manager.running()
    for capture, only in chosen:
        now_us = running_for(capture)
        session = Session(capture, now_us=now_us) if only is None else FilteredSession(capture, only, now_us=now_us)
        told = manager.told_of(session.conversation)
        for events in session.events():
            told.feed(events)
    for sentence in manager.done():
        note(sentence)


class HookView:
    """Shows a session by ``view``, and tells addons of what is shown."""

    def __init__(self, told: Told, view: View) -> None:
        self._told = told
        self._view = view

    def feed(self, step: Step) -> None:
        """Take what a record or the time brought."""
        self._view.feed(step)
        self._told.feed(step.shown)

    def rest(self) -> None:
        """Nothing more is there at the moment."""
        self._view.rest()

    def end(self, step: Step, *, lost: bool) -> None:
        """The session is over."""
        self._view.end(step, lost=lost)
        self._told.feed(step.shown)

    def waiting(self, now_us: int) -> Iterable[Going]:
        """The requests that are open."""
        return self._view.waiting(now_us)


@contextmanager
def on_screen(screen: Screen, manager: Manager, say: Callable[[str], object]) -> Iterator[None]:
    """Let addons print between the lines of ``screen``, and hear of beginning and end."""
    with redirect_stdout(_Lines(screen)):
        manager.running()
        try:
            yield
        finally:
            for sentence in manager.done():
                say(sentence)
            screen.flush()


class _Lines(TextIOBase):
    """Standard output for addons."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._begun = ""

    def writable(self) -> bool:
        """Yes."""
        return True

    def write(self, text: str) -> int:
        """Print the lines that are whole."""
        *lines, self._begun = (self._begun + text).split("\n")
        for line in lines:
            self._screen.print([("", visible(line.expandtabs()))])
        return len(text)
