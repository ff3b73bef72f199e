"""`mcpsniff tail`: what is said, as it is said."""

import os
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Final, Protocol

import click

from mcpsniff.capture.arrivals import Arrivals
from mcpsniff.capture.catalog import TRY, find
from mcpsniff.capture.follower import INTERVAL, CaptureLost
from mcpsniff.capture.labels import shown
from mcpsniff.capture.reader import part_numbers
from mcpsniff.capture.store import ENVIRONMENT, Warn, bare_folder, capture_folder, part_path, split_part
from mcpsniff.cli.addon_options import with_addons
from mcpsniff.cli.complete import complete_capture
from mcpsniff.cli.followed import Followed
from mcpsniff.cli.interrupts import Remembered
from mcpsniff.cli.output import note
from mcpsniff.cli.screen import Screen
from mcpsniff.errors import CaptureError, UsageError
from mcpsniff.transcript.live.foot import foot_lines
from mcpsniff.transcript.live.gutter import Gutter
from mcpsniff.transcript.live.session import Facts, LiveSession
from mcpsniff.transcript.live.view import LiveJson, LiveText, View
from mcpsniff.transcript.payload import FOLDED, NONE, WHOLE, Style

if TYPE_CHECKING:
    from mcpsniff.hooks.manager import Manager

LOOK: Final = 0.2
"""Seconds between two looks for new captures."""
REDRAW: Final = 0.1
"""Seconds between two states of the running clocks."""
LATEST: Final = 50
"""Rows that are shown of a session that was there before, where all sessions are followed."""


@click.command("tail")
@click.argument("capture", required=False, metavar="[CAPTURE|LABEL]", shell_complete=complete_capture)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="For people, or for programs (as of show; of all sessions each line with its label).",
)
@click.option(
    "--payload/--no-payload",
    default=None,
    help="Show payloads whole, or not at all. Without either, text folds long ones and JSON has none.",
)
@click.option("--filter", "expression", metavar="EXPR", help="Show only what matches (as of show).")
@click.option("--alone", is_flag=True, help="Let --filter judge each message by itself, not whole exchanges.")
@click.option(
    "--from",
    "since",
    type=click.Choice(["start", "now"]),
    help=f"Show sessions whole, or only what comes from now on. Without it the sessions that are running when all are "
    f"followed are shown from their latest {LATEST} rows on.",
)
@with_addons
@click.option("--dir", "directory", metavar="DIR", help="Look for captures in this folder.")
def command(
    *,
    capture: str | None,
    form: str,
    payload: bool | None,
    expression: str | None,
    alone: bool,
    since: str | None,
    addon: tuple[str, ...],
    settings: tuple[str, ...],
    directory: str | None,
) -> int:
    """Show what is said while it is said, with the requests that are open at the foot of the terminal.

    CAPTURE is a file. LABEL is the name of a server as `mcpsniff list` shows it, or a part of that name, and means its
    newest capture. It is followed to its end. Without either all sessions that are being recorded are shown, also
    those that begin later, until Ctrl-C.

    Nothing here touches the traffic: tail can be stopped and started as you like.
    """
    if expression is not None:
        from mcpsniff.transcript.filter import compile_filter

        compile_filter(expression)
    elif alone:
        raise UsageError("--alone says how --filter is meant, and needs it")
    screen = Screen()

    def say(text: str) -> None:
        """What was shown comes first, and the foot makes room."""
        screen.flush()
        note(text)

    manager = _manager(addon, settings, say)
    source: Source = All(directory, say) if capture is None else One(capture, directory, say)
    views = Views(screen, form, payload, since, expression, alone=alone, together=capture is None, manager=manager)
    tail = Tail(screen, source, views)
    try:
        with Remembered() as ctrl_c, _printing(screen, manager, say):
            tail.run(ctrl_c.check)
            screen.flush()
    except KeyboardInterrupt:
        screen.flush()
    return 0


def _manager(files: Sequence[str], settings: Sequence[str], say: Warn) -> "Manager | None":
    """Load addons, if there are any. Raises UsageError."""
    if not files and not settings:
        return None
    from mcpsniff.cli.observed import observing
    from mcpsniff.hooks.manager import Manager

    return Manager(observing(files, settings, say))


def _printing(screen: Screen, manager: "Manager | None", say: Warn) -> AbstractContextManager[None]:
    """Let addons print between the lines, if there are any."""
    if manager is None:
        return nullcontext()
    from mcpsniff.cli.observed import on_screen

    return on_screen(screen, manager, say)


class Views:
    """Makes the views of sessions, as the command line asks for."""

    def __init__(
        self,
        screen: Screen,
        form: str,
        payload: bool | None,
        since: str | None,
        expression: str | None,
        *,
        alone: bool,
        together: bool,
        manager: "Manager | None" = None,
    ) -> None:
        self._screen = screen
        self._form = form
        self._payload = payload
        self._since = since
        self._expression = expression
        self._alone = alone
        self._manager = manager
        self._gutter = Gutter(screen.print, screen.width) if together else None

    def resize(self) -> None:
        """The terminal may have another width now."""
        if self._gutter is not None:
            self._gutter.width = self._screen.width

    def begin(self, *, is_new: bool) -> Callable[[Facts, str], tuple[LiveSession, View]]:
        """How to begin with a session; ``is_new``: it began after we did."""

        def begin(facts: Facts, label: str) -> tuple[LiveSession, View]:
            if self._gutter is not None:
                label = self._gutter.join(label)
            session = LiveSession(facts, label, self._only(facts.header.started))
            return session, self._told(session, self._view(session, is_new=is_new))

        return begin

    def _told(self, session: LiveSession, view: View) -> View:
        """The view, and addons with it, if there are any."""
        if self._manager is None:
            return view
        from mcpsniff.cli.observed import HookView

        return HookView(self._manager.told_of(session.conversation), view)

    def _only(self, started: str) -> Any:
        if self._expression is None:
            return None
        from mcpsniff.transcript.filter import compile_filter

        return compile_filter(self._expression, alone=self._alone, started=started)

    def _view(self, session: LiveSession, *, is_new: bool) -> View:
        screen, from_now = self._screen, self._since == "now" and not is_new
        if self._form == "json":
            label = session.label if self._gutter is not None else None
            return LiveJson(screen.write, payload=bool(self._payload), label=label, from_now=from_now)
        latest = None
        if from_now:
            latest = 0
        elif self._since is None and self._gutter is not None and not is_new:
            latest = LATEST
        return LiveText(
            session, screen.print, lambda: screen.width, _style(self._payload), latest=latest, gutter=self._gutter
        )


class Source(Protocol):
    """Which captures are to be followed."""

    @property
    def is_over(self) -> bool:
        """Whether there is nothing more to follow."""

    def look(self) -> list[str]:
        """The captures that are to be followed from now on."""

    def ended(self) -> None:
        """The session of one of them has ended."""

    def lost(self, path: str, error: CaptureLost) -> None:
        """One of them is not what it was any more."""

    def failed(self, path: str, error: CaptureError) -> None:
        """One of them cannot be read. Raises the error if that is the end."""


class One:
    """One capture, to its end. When it is lost, what comes in its place. Raises CaptureError when there is none."""

    def __init__(self, what: str, directory: str | None, say: Warn) -> None:
        found = find(what, directory, warn=say)
        self._say = say
        self._path = found.path
        self.is_over = False
        self._wanted = True
        if not os.path.exists(found.path):
            numbers = part_numbers(split_part(found.path)[0])
            if not numbers:
                raise CaptureError(f"no such capture: {shown(found.path)}")
            self._path = part_path(split_part(found.path)[0], numbers[0])
        if found.said:
            say(f"following {shown(found.path)}, {found.said}")

    def look(self) -> list[str]:
        """The capture, when it is there and not followed already."""
        if not self._wanted or not os.path.exists(self._path):
            return []
        self._wanted = False
        return [self._path]

    def ended(self) -> None:
        """Nothing more is to be expected."""
        self.is_over = True

    def lost(self, path: str, error: CaptureLost) -> None:
        """Wait for what comes in its place."""
        there = os.path.exists(path)
        self._say(f"{error}; {'following what is there now' if there else 'waiting for it to come back'}")
        self._wanted = True

    def failed(self, path: str, error: CaptureError) -> None:  # noqa: ARG002
        """There is nothing else to follow."""
        raise error


class All:
    """All captures that are being written, without end."""

    def __init__(self, directory: str | None, say: Warn) -> None:
        self._say = say
        folder = capture_folder(directory, say)
        folders = [folder]
        if directory is None and ENVIRONMENT not in os.environ and bare_folder() != folder:
            folders.append(bare_folder())
        self._folder = folder
        self._arrivals = Arrivals(folders)
        self._announced = False
        self.is_over = False

    def look(self) -> list[str]:
        """The captures that began; says so when there is none to begin with."""
        began = self._arrivals.look()
        if not began and not self._announced:
            self._say(f"waiting for a session in {shown(self._folder)}: {TRY}")
        self._announced = True
        return began

    def ended(self) -> None:
        """Others go on, or will come."""

    def lost(self, path: str, error: CaptureLost) -> None:
        """Go on with the others, and with this one if it comes back."""
        self._say(str(error))
        self._arrivals.forget(path)

    def failed(self, path: str, error: CaptureError) -> None:  # noqa: ARG002
        """Go on with the others."""
        self._say(f"passed over: {error}")


class Tail:
    """Follows what ``source`` names, on ``screen``."""

    def __init__(
        self, screen: Screen, source: Source, views: Views, idle: Callable[[float], object] = time.sleep
    ) -> None:
        """``idle`` waits for so many seconds at most; it returns something true if the foot is to be drawn now."""
        self._idle = idle
        self._screen = screen
        self._source = source
        self._views = views
        self._followed: list[Followed] = []
        self._next_look = self._next_draw = 0.0
        self._looked = False

    def run(self, check: Callable[[], object] = lambda: None) -> None:
        """Follow until there is nothing more to follow, or nobody reads any more; ``check`` is called now and then."""
        while True:
            check()
            now = time.monotonic()
            if now >= self._next_look:
                self._look()
                self._next_look = now + LOOK
            busy = False
            for one in list(self._followed):
                busy |= self._step(one)
            if busy or now >= self._next_draw or self._source.is_over:
                self._draw()
                self._next_draw = now + REDRAW
            if self._source.is_over or self._screen.is_closed:
                return
            if self._idle(0.0 if busy else INTERVAL):
                self._next_draw = 0.0

    def finish(self) -> None:
        """Nothing more will be recorded: show what is left of each session, and its end."""
        for one in self._followed:
            one.finish()
        self._followed.clear()
        self._draw()

    def _look(self) -> None:
        for path in self._source.look():
            try:
                self._followed.append(Followed(path, self._views.begin(is_new=self._looked)))
            except CaptureError as error:
                self._source.failed(path, error)
        self._looked = True

    def _step(self, one: Followed) -> bool:
        try:
            busy = one.step()
        except CaptureLost as error:
            self._source.lost(one.path, error)
        except CaptureError as error:
            one.close()
            self._source.failed(one.path, error)
        else:
            if not one.is_over:
                return busy
            self._source.ended()
        self._followed.remove(one)
        return True

    def _draw(self) -> None:
        self._views.resize()
        if not self._screen.has_foot:
            self._screen.flush()
            return
        waiting = [each for one in self._followed for each in one.waiting()]
        self._screen.flush(foot_lines(waiting, *self._screen.foot_size) if waiting else None)


def _style(payload: bool | None) -> Style:
    return FOLDED if payload is None else WHOLE if payload else NONE
