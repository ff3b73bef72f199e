"""Playing a recording: what is due is shown, and keys are listened to in between."""

from typing import Final, Protocol

from mcpsniff.replay.play.player import Player
from mcpsniff.replay.play.reel import Item

TICK: Final = 0.1
"""Seconds between two states of the running clocks."""
LOOK: Final = 0.05
"""Seconds after which keys are looked at, however much is due."""
STANDSTILL: Final = 1.0
"""Seconds between two looks at the clock that are too long for anything but a process that was stopped."""


class Stage(Protocol):
    """Where it is played."""

    def now(self) -> float:
        """Seconds of a clock that never goes back."""

    def show(self, item: Item, passed_over: int) -> None:
        """Take what is to be shown next; with the first, how many rows before it were ``passed_over``."""

    def draw(self, player: Player, now: float) -> None:
        """Let it be seen, and how the playing stands."""

    def keys(self, seconds: float) -> list[str]:
        """Wait until a key is pressed, at most so long; return the keys that were."""


class SteadyClock:
    """The time of ``stage`` without the time for which the process was stopped."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._latest = stage.now()
        self._lost = 0.0

    def now(self) -> float:
        """Seconds of a clock that goes on by at most STANDSTILL between two looks."""
        now = self._stage.now()
        self._lost += max(now - self._latest - STANDSTILL, 0.0)
        self._latest = now
        return now - self._lost


def play(player: Player, stage: Stage, clock: SteadyClock) -> None:
    """Play until there is nothing more to show; ``player`` was made with the time of ``clock``."""
    look = now = clock.now()
    while not player.over:
        wait = player.wait(now)
        if wait > 0 or now >= look:
            stage.draw(player, now)
            for key in stage.keys(min(wait, TICK)):
                player.press(key, clock.now())
            look = clock.now() + LOOK
        now = clock.now()
        is_first = player.shown is None
        if (item := player.poll(now)) is not None:
            stage.show(item, player.passed_over if is_first else 0)
