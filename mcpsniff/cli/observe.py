"""Observing addons beside a recorder, a process of its own: it follows captures, and calls hooks for what it sees.

It is started by `mcpsniff.proxy.observer`, ends when its standard input does, and is nice to the process on the wire.
"""

import os
import signal
import sys
import time
from collections.abc import Iterable, Sequence
from io import TextIOBase, TextIOWrapper
from types import FrameType
from typing import Final, TextIO

from mcpsniff.capture.follower import INTERVAL, CaptureLost
from mcpsniff.cli.followed import Followed
from mcpsniff.cli.live import NICENESS, Given
from mcpsniff.cli.output import note
from mcpsniff.cli.screen import CLEAR
from mcpsniff.errors import CaptureError, McpsniffError
from mcpsniff.hooks import strays
from mcpsniff.hooks.addon import Addon
from mcpsniff.hooks.loading import read
from mcpsniff.hooks.manager import Manager, Told
from mcpsniff.transcript.live.foot import Going
from mcpsniff.transcript.live.session import Facts, LiveSession, Step
from mcpsniff.transcript.live.view import View
from mcpsniff.transcript.safe import visible

TO_END: Final = 5
"""Seconds from a TERM to the end, whatever the addons are at."""
OPTIONS: Final = {"--addon": 0, "--set": 1}


class _Below(TextIOBase):
    """A terminal that may show the foot of a live view, which what addons print takes the place of."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._begun = ""

    def writable(self) -> bool:
        """Yes."""
        return True

    def fileno(self) -> int:
        """The descriptor of the terminal."""
        return self._stream.fileno()

    def write(self, text: str) -> int:
        """Print the lines that are whole."""
        *lines, self._begun = (self._begun + text).split("\n")
        if lines:
            self._stream.write(CLEAR + "".join([f"{line}\n" for line in lines]))
            self._stream.flush()
        return len(text)

    def finish(self) -> None:
        """Print also a line that is not whole."""
        if self._begun:
            self.write("\n")


class Unseen:
    """A view that tells addons of a session, and shows nothing."""

    def __init__(self, told: Told) -> None:
        self._told = told

    def feed(self, step: Step) -> None:
        """Take what a record or the time brought."""
        self._told.feed(step.shown)

    def rest(self) -> None:
        """Nothing more is there at the moment."""

    def end(self, step: Step, *, lost: bool) -> None:  # noqa: ARG002
        """The session is over."""
        self._told.feed(step.shown)

    def waiting(self, now_us: int) -> Iterable[Going]:  # noqa: ARG002
        """Nothing is shown."""
        return ()


class Observation:
    """Follows captures, and tells addons of them."""

    def __init__(self, paths: Sequence[str], addons: Sequence[Addon]) -> None:
        self._given = Given(paths)
        self._manager = Manager(addons)
        self._followed: list[Followed] = []
        self._asked_to_end = False

    def run(self) -> None:
        """Follow until nothing more will be recorded."""
        signal.signal(signal.SIGTERM, self._end)
        self._manager.running()
        self._followed = [followed for path in self._given.look() if (followed := self._begin(path)) is not None]
        while not (self._given.is_over or self._asked_to_end):
            busy = False
            for one in list(self._followed):
                busy |= self._step(one)
            if not busy:
                time.sleep(INTERVAL)
        for one in self._followed:
            one.finish()
        for sentence in self._manager.done():
            note(sentence)

    def _end(self, _number: int, _frame: FrameType | None) -> None:
        self._asked_to_end = True
        signal.alarm(TO_END)

    def _begin(self, path: str) -> Followed | None:
        def begin(facts: Facts, label: str) -> tuple[LiveSession, View]:
            session = LiveSession(facts, label)
            return session, Unseen(self._manager.told_of(session.conversation))

        try:
            return Followed(path, begin)
        except CaptureError as error:
            note(f"passed over: {error}")
            return None

    def _step(self, one: Followed) -> bool:
        try:
            busy = one.step()
        except (CaptureLost, CaptureError) as error:
            note(str(error))
            one.close()
        else:
            if not one.is_over:
                return busy
        self._followed.remove(one)
        return True


def main(words: Sequence[str]) -> int:
    """Tell addons of captures until the end; return the exit status."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the recorder, and we tell what it still records
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    os.nice(NICENESS)
    if sys.stdout.isatty():
        sys.stdout = _Below(sys.stdout)
    elif isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)
    at = list(words).index("--")
    given: tuple[list[str], list[str]] = ([], [])
    for option, value in zip(words[:at:2], words[1:at:2], strict=True):
        given[OPTIONS[option]].append(value)
    try:
        strays.tell(note)
        addons = read(*given, note)
        for addon in addons:
            addon.observe_apart()
            addon.configure(given[1])
        observation = Observation(words[at + 1 :], addons)
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115 - what ends us is nothing to read for an addon
        observation.run()
        if isinstance(sys.stdout, _Below):
            sys.stdout.finish()
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except McpsniffError as error:
        note(f"no addon observes: {error}")
        return error.exit_status
    except Exception as error:
        if os.environ.get("MCPSNIFF_DEBUG"):
            raise
        bug = "this is a bug in mcpsniff, please report it"
        what = visible(f"{type(error).__name__}: {error}")
        note(f"no addon observes any more; {bug}: {what} (MCPSNIFF_DEBUG=1 shows where)")
        return 70
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
