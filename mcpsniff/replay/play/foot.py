"""The foot of `mcpsniff play` on a terminal: what is open at this moment of the recording, and how it stands."""

from typing import Final

from mcpsniff.replay.play.clock import NO_WAITING
from mcpsniff.replay.play.keys import HELPS
from mcpsniff.replay.play.player import Player
from mcpsniff.replay.play.reel import Reel
from mcpsniff.transcript.layout import cut, length
from mcpsniff.transcript.live.foot import foot_lines
from mcpsniff.transcript.pretty import Line
from mcpsniff.transcript.units import duration, moment

HINT: Final = "? keys"


def foot(player: Player, reel: Reel, total_us: int | None, now: float, size: tuple[int, int]) -> list[Line]:
    """The lines, as many and as wide as ``size`` allows (cells, lines); ``total_us`` is when the recording ends."""
    width, height = size
    if height < 1 or width < 1:
        return []
    position = player.timeline.position(now)
    lines = [cut(line, width) for line in _helps()] if player.has_help else []
    lines = lines[: height - 1]
    if player.shown is not None and (room := height - 1 - len(lines)):
        going = list(reel.open.at(position, player.shown.row.n))
        lines = [*foot_lines(going, width, room), *lines]
    return [*lines, cut(_status(player, position, total_us, width), width)]


def _status(player: Player, position: int, total_us: int | None, width: int) -> Line:
    """How it stands: state, recorded time, speed, and what is going on besides."""
    timeline = player.timeline
    time = _clock(position)
    if total_us is not None:
        time += f" / {_clock(max(total_us, position))}"
    line: Line = [_state(player), ("", "  "), ("plain", time), ("words", f"  {speed_words(timeline.speed)}")]
    if player.shown is not None:
        line.append(("number", f"  #{player.shown.row.n}"))
    if timeline.cut_us is not None and not player.is_paused and not player.is_searching:
        line.append(("remark", f"  {duration(timeline.cut_us)} without a row, cut short"))
    hint = HINT if not player.is_paused else f"space goes on  . step  n next finding  {HINT}"
    if length(line) + len(hint) + 2 <= width:
        line += [("", " " * (width - length(line) - len(hint))), ("words", hint)]
    return line


def _state(player: Player) -> tuple[str, str]:
    if player.is_seeking:
        return "heading", "▸▸ to the next finding"
    if player.is_paused:
        return "heading", "‖ paused"
    return "heading", "… looking" if player.is_searching else "▸ playing"


def _helps() -> list[Line]:
    return [[("name", f"{key:>7}"), ("plain", f"  {what}")] for key, what in HELPS]


def _clock(us: int) -> str:
    """A moment as it stands before the rows, to tenths of a second, so that it does not flicker."""
    return moment(us)[:-2]


def speed_words(speed: float) -> str:
    """``x1``, ``x0.25``; ``no waiting``."""
    return "no waiting" if speed == NO_WAITING else f"x{speed:.10g}"
