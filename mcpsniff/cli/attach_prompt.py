"""The prompt at which a person decides about held messages: what is typed, what comes of it, and the foot with both."""

import re
from collections.abc import Callable
from typing import Final

from mcpsniff.capture.labels import shown
from mcpsniff.cli.attach_desk import Desk
from mcpsniff.cli.attach_edit import Run
from mcpsniff.cli.attach_lines import rows
from mcpsniff.cli.attach_link import EndedError, Link
from mcpsniff.cli.attach_orders import COMMANDS, Typed, typed
from mcpsniff.errors import McpsniffError
from mcpsniff.transcript.layout import cut, split, wrapped
from mcpsniff.transcript.pretty import Line
from mcpsniff.transcript.safe import cells, visible
from mcpsniff.transcript.units import count

HEIGHT: Final = 6
"""Lines of the foot, at most: messages and the prompt."""
_KEY: Final = re.compile("\x1b\\[[0-9;?]*[A-Za-z~]|\x1bO.|.", re.DOTALL)
_LONGEST: Final = 1 << 20
_CURSOR: Final = "█"
_ENTER, _ERASE, _CLEAR, _WORD, _END = frozenset("\r\n"), frozenset("\x7f\x08"), "\x15", "\x17", "\x04"
_UP, _DOWN = ("\x1b[A", "\x1bOA"), ("\x1b[B", "\x1bOB")

type Print = Callable[[Line], object]


class Prompt:
    """Prints above the foot with ``print_line``; ``width`` tells the cells of a line. ``run`` runs an editor."""

    def __init__(self, link: Link, print_line: Print, width: Callable[[], int], run: Run) -> None:
        self.is_left = False
        """True once the user wants to detach."""
        self._link = link
        self._print = print_line
        self._width = width
        self._desk = Desk(link, print_line, width, run)
        self._line = ""
        self._before: list[str] = []
        """Lines that were typed before."""
        self._at = 0

    def close(self) -> None:
        """It ends: say where what was edited is kept."""
        self._desk.close()

    def type(self, text: str) -> None:
        """Take what was typed."""
        for key in _KEY.findall(text):
            if key in _ENTER:
                self._enter()
            elif key in _ERASE:
                self._line = self._line[:-1]
            elif key == _CLEAR:
                self._line = ""
            elif key == _WORD:
                self._line = re.sub(r"\S*\s*\Z", "", self._line)
            elif key == _END:
                self.is_left = self.is_left or not self._line
            elif key in _UP or key in _DOWN:
                self._recall(-1 if key in _UP else 1)
            elif not key.startswith("\x1b") and key.isprintable() and len(self._line) < _LONGEST:
                self._line += key

    def look(self) -> None:
        """Take what there is of news."""
        while self._link.look():
            pass
        self._desk.tell_gone()

    def foot(self, width: int, height: int, *, always: bool) -> list[Line]:
        """The oldest messages, and what is being typed; nothing where there is neither, unless it is ``always``."""
        held = list(self._link.held.values())
        if self._link.is_over or height < 1 or not (held or self._line or always):
            return []
        height = min(height, HEIGHT)
        state = f"{len(held):,} held" if held else "nothing held"
        if not self._link.session.get("on", True):
            state = "break points are off"
        start = f"{state} (h for help)> "
        room = max(width - cells(start + _CURSOR), 0)
        end = split(visible(self._line)[::-1], room)[0][::-1]
        prompt: Line = [("loud" if held else "remark", start), ("plain", end + _CURSOR)]
        return [*rows(held, width, height - 1), cut(prompt, width)]

    def _recall(self, step: int) -> None:
        self._at = min(max(self._at + step, 0), len(self._before))
        self._line = self._before[self._at] if self._at < len(self._before) else ""

    def _enter(self) -> None:
        line, self._line = self._line.strip(), ""
        if not line:
            return
        self._before = [*[one for one in self._before if one != line][-99:], line]
        self._at = len(self._before)
        self._print([("remark", "> "), ("plain", visible(line))])
        try:
            self._do(typed(line))
        except EndedError:
            pass  # its end is told when it is noticed
        except McpsniffError as error:
            self.say(str(error))

    def _do(self, what: Typed) -> None:
        if what.do == "quit":
            self.is_left = True
        elif what.do == "help":
            for text in COMMANDS.values():
                self._print([("plain", f"  {text}")])
            self.say("A letter is enough. N is the number in front of a message; without it the oldest is meant.")
        elif what.do == "list":
            held = list(self._link.held.values())
            for row in rows(held, self._width(), len(held)):
                self._print(row)
            if not held:
                self.say(f"nothing is held; break points: {shown('  '.join(self._link.session['breaks']))}")
        elif what.do in ("on", "off"):
            passed = self._link.order(what.do)["passed"]
            if what.do == "off":
                self._link.forget_all()
            self.say("messages are held again" if what.do == "on" else f"nothing is held any more; {passed} went on")
        else:
            self._desk.carry_out(what)

    def say(self, text: str) -> None:
        """Print a sentence of our own."""
        for line in wrapped(text, self._width()):
            self._print([("remark", line)])


def greeting(link: Link) -> str:
    """What is said to somebody who attaches."""
    session = link.session
    name = shown(", ".join(session["labels"])) or session["transport"]
    breaks = shown("  ".join(session["breaks"]))
    return f"attached to {name} (process {session['pid']}), {count(len(session['breaks']), 'break point')}: {breaks}"
