"""`mcpsniff play`: a capture as it went, at its own pace."""

import os
import signal
import sys
import time
from contextlib import ExitStack, nullcontext, suppress
from typing import Final

import click

from mcpsniff.cli.complete import complete_capture
from mcpsniff.cli.output import note
from mcpsniff.cli.screen import Screen
from mcpsniff.cli.show import choose_part, running_for, session_of, style_of
from mcpsniff.replay.play.bounds import Bound, check_order, read_bound
from mcpsniff.replay.play.clock import NO_WAITING, Timeline
from mcpsniff.replay.play.foot import foot, speed_words
from mcpsniff.replay.play.loop import SteadyClock, play
from mcpsniff.replay.play.options import read_idle, read_speed
from mcpsniff.replay.play.page import PlayPage
from mcpsniff.replay.play.player import BOUND, STOPPED, Player
from mcpsniff.replay.play.reel import Item, Reel
from mcpsniff.replay.play.terminal import Ended, Terminal
from mcpsniff.replay.play.total import Until, last_moment
from mcpsniff.transcript.closing import closing_lines
from mcpsniff.transcript.head import Entry
from mcpsniff.transcript.payload import Style
from mcpsniff.transcript.session import Session
from mcpsniff.transcript.units import count, duration, moment

SECOND_US: Final = 1_000_000
IDLE: Final = "2"
"""Seconds that a gap is waited for, unless asked otherwise."""


@click.command("play")
@click.argument("capture", required=False, metavar="[CAPTURE|LABEL]", shell_complete=complete_capture)
@click.option(
    "--speed",
    metavar="X",
    default="1",
    show_default=True,
    help="So many times as fast, such as 4 or 0.5; max (or 0) waits for nothing.",
)
@click.option(
    "--idle-limit",
    "idle",
    metavar="S",
    default=IDLE,
    show_default=True,
    help="Wait at most so many recorded seconds from row to row (also 500ms, 1m); none: as long as it took.",
)
@click.option("--from", "first", metavar="WHEN", help="Begin at this moment (10s, 1m20s, 1:02.345) or number ('#12').")
@click.option("--to", "last", metavar="WHEN", help="End at this moment or number, which is still shown.")
@click.option(
    "--payload/--no-payload",
    default=None,
    help="Show payloads whole, or not at all. Without either, long ones are folded.",
)
@click.option("--filter", "expression", metavar="EXPR", help="Show only what matches (as of show).")
@click.option("--alone", is_flag=True, help="Let --filter judge each message by itself, not whole exchanges.")
@click.option("--dir", "directory", metavar="DIR", help="Look for captures in this folder.")
def command(
    *,
    capture: str | None,
    speed: str,
    idle: str,
    first: str | None,
    last: str | None,
    payload: bool | None,
    expression: str | None,
    alone: bool,
    directory: str | None,
) -> None:
    """Play a capture: the rows of `mcpsniff show`, each when it came, with the requests that are open at the foot.

    CAPTURE is a file (- for standard input). LABEL is the name of a server as `mcpsniff list` shows it, or a part of
    that name, and means its newest capture. Without either the newest capture of all is played.

    On a terminal these keys work: space pauses and goes on, . or → shows one row, n goes to the next finding, + and -
    change the speed, q ends, ? explains. Without one the rows come in their time, and nothing else.

    Nothing is sent, connected to or run.
    """
    pace, idle_us = read_speed(speed), read_idle(idle)
    for text, option in ((first, "--from"), (last, "--to")):
        read_bound(text, None, option)  # what cannot be read is said before a capture is looked for
    opened, only = choose_part(capture, directory, expression, alone=alone)
    begin = read_bound(first, opened.header.started, "--from")
    end = read_bound(last, opened.header.started, "--to")
    check_order(begin, end)
    now_us = running_for(opened)
    total = None if capture == "-" else last_moment(opened.parts[-1].path)
    if only is None and now_us is not None and total is not None:
        session = Session(Until(opened, total), now_us=now_us)
    else:
        session = session_of(opened, now_us, only)
    if (whole := session.whole) is not None:
        total = whole.last_t
    reel = Reel(session, now_us=now_us)
    performance = Performance(reel, style_of(payload), total, has_stdin=capture != "-")
    try:
        performance.run(pace, idle_us, begin, end)
    except Ended as ended:
        signal.signal(ended.number, signal.SIG_DFL)
        os.kill(os.getpid(), ended.number)


def number_hint(bound: Bound | None) -> str:
    """How to write a number of an event, for who may have meant one by a whole number of seconds."""
    if bound is None or not bound.t or bound.t % SECOND_US:
        return ""
    number = bound.t // SECOND_US
    return f"; '#{number}' is the event with that number"


class Plain(Screen):
    """Standard output without a single escape code, also where it is a terminal."""

    def __init__(self) -> None:
        super().__init__()
        self._console = None
        self.has_foot = False


class Performance:
    """Plays ``reel`` on standard output; on a terminal with keys and a foot. See `mcpsniff.replay.play.loop.Stage`."""

    def __init__(self, reel: Reel, style: Style, total_us: int | None, *, has_stdin: bool) -> None:
        self._reel = reel
        self._style = style
        self._total_us = total_us
        self._screen = Screen()
        self._terminal: Terminal | None = None
        self._keys_from = self._keyboard(has_stdin=has_stdin) if self._screen.has_foot else None
        if self._keys_from is None:
            self._screen = Plain()
        self._page = PlayPage(self._screen.print, self._screen.width, style)

    def run(self, speed: float, idle_us: int | None, first: Bound | None, last: Bound | None) -> None:
        """Play it all, the head and the end with it. Raises Ended when a signal wants the process to end."""
        self._head(speed, idle_us)
        with ExitStack() as stack:
            if self._keys_from is not None:
                try:
                    self._terminal = stack.enter_context(Terminal(self._keys_from, self._clear))
                except OSError:
                    self._screen = Plain()
                    self._page = PlayPage(self._screen.print, self._screen.width, self._style)
                else:
                    stack.callback(self._clear)
            clock = SteadyClock(self)
            player = Player(self._reel.items(), Timeline(speed, idle_us, now=clock.now()), first, last)
            play(player, self, clock)
        self._end(player, first, last)
        self._screen.flush()

    @staticmethod
    def _keyboard(*, has_stdin: bool) -> int | None:
        """The descriptor of the terminal that keys come from; None if there is none."""
        if has_stdin:
            return sys.stdin.fileno() if sys.stdin is not None and sys.stdin.isatty() else None
        if sys.stdin.isatty():
            return None  # the capture is typed there
        try:
            return os.open("/dev/tty", os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return None

    def now(self) -> float:
        """Seconds."""
        return time.monotonic()

    def show(self, item: Item, passed_over: int) -> None:
        """Print a row, or what was found later; before the first one, how many were ``passed_over``."""
        width = self._screen.width
        if self._page.width != max(width, 20):
            self._page = PlayPage(self._screen.print, width, self._style, self._page)
        if passed_over:
            self._page.remark(f"… {count(passed_over, 'earlier row')} passed over (--from)")
        self._page.item(item)

    def draw(self, player: Player, now: float) -> None:
        """Write what was printed, and the foot below it."""
        lines = None
        if self._terminal is not None:
            lines = foot(player, self._reel, self._total_us, now, self._screen.foot_size) or None
        if player.shown is not None:
            self._reel.open.clear(player.timeline.position(now))
        with nullcontext() if self._terminal is None else self._terminal.writing():
            self._screen.flush(lines)

    def keys(self, seconds: float) -> list[str]:
        """Wait for keys, or only wait. Raises BrokenPipeError when nobody reads the rows any more."""
        if self._terminal is not None:
            return self._terminal.wait(seconds)
        if self._screen.is_closed:
            raise BrokenPipeError
        if seconds > 0:
            time.sleep(seconds)
        return []

    def _clear(self) -> None:
        """Remove the foot."""
        with suppress(OSError):
            self._screen.flush()

    def _head(self, speed: float, idle_us: int | None) -> None:
        """Print the head at once, so that something is there before the first row is due."""
        self._reel.begin()
        told = speed_words(speed)
        if speed != NO_WAITING:
            limit = None if idle_us is None else duration(idle_us)
            told += ", pauses as they were" if limit is None else f", pauses over {limit} cut to that (--idle-limit)"
        session = self._reel.session
        self._page.head(session.label, [*session.head(), Entry("played", "", told)])
        self._screen.flush()

    def _end(self, player: Player, first: Bound | None, last: Bound | None) -> None:
        """Print how it ended; the summary where all of the session was played."""
        page, shown = self._page, player.shown
        if player.over == STOPPED:
            self._screen.flush()
            where = (
                "before the first row" if shown is None else f"at #{shown.row.n}; --from '#{shown.row.n}' goes on there"
            )
            note(f"ended {where}")
            return
        if player.is_seeking:
            page.remark("no further finding")
        if shown is None and player.passed_over:
            ends = f"nothing from {first} on: the recording ends at {moment(player.latest_t)} (--from"
            page.remark(f"{ends}{number_hint(first)})")
        if player.over == BOUND:
            page.remark(f"ended at {last} (--to); the recording goes on")
            return
        if text := self._reel.ending:
            page.end(text)
        if self._reel.is_running:
            page.remark("this is what had been recorded when playing began; mcpsniff tail shows what comes")
        if not player.passed_over:
            for line in closing_lines(self._reel.summary, page.width):
                self._screen.print(line)
