"""What `mcpsniff attach` shows of held messages, as lines. Nothing captured is in them before it was made visible."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from mcpsniff.cli.attach_link import Held
from mcpsniff.transcript.layout import cells, cut, length
from mcpsniff.transcript.live.foot import clock
from mcpsniff.transcript.pretty import Line, pretty
from mcpsniff.transcript.safe import shortened, visible
from mcpsniff.transcript.units import count, size

MOST_LINES: Final = 200
"""Lines of a message that are shown at the prompt; the editor has all of it."""
LONGEST_STRING: Final = 2000
_LONGEST_NAME: Final = 60
_SIDES: Final = {"c2s": ("client", "→"), "s2c": ("server", "←")}
_ANSWERS: Final = {"response": "answer to", "error": "error to"}
"""What stands before the method that is answered."""


def row(held: Held, width: int) -> Line:
    """One message on one line: its number, what it is, and for how long it has been held."""
    facts = held.facts
    role, arrow = _SIDES.get(facts["dir"], ("remark", "?"))
    line: Line = [("number", f"{held.number:>4} "), (role, f"{arrow} "), *_title(held)]
    if facts["id"] is not None:
        line.append(("id", f"  id {shortened(visible(facts['id']), _LONGEST_NAME)}"))
    waited = f"{size(facts['bytes'])}  {clock(int(held.age * 1e6))}"
    if held.left is not None:
        waited += f" of {clock(int((held.age + held.left) * 1e6))}"
    line = cut(line, max(width - cells(waited) - 1, 0))
    gap = max(width - length(line) - cells(waited), 0)
    return cut([*line, ("", " " * gap), ("waited", waited)], width)


def rows(held: Sequence[Held], width: int, height: int) -> list[Line]:
    """At most ``height`` lines, the oldest message first; the last one counts those that have no room."""
    if len(held) <= height:
        return [row(one, width) for one in held]
    if height < 1:
        return []
    more = f"     … and {count(len(held) - height + 1, 'more')}".replace("mores", "more")
    return [*(row(one, width) for one in held[: height - 1]), cut([("remark", more)], width)]


def words(held: Held) -> str:
    """A held message in a few words, such as ``tools/call add``."""
    return "".join(text for _, text in _title(held))


def whole(raw: bytes, width: int) -> Iterator[Line]:
    """All of a message, laid out as `show` does."""
    return pretty(raw.decode(errors="backslashreplace").removeprefix("\ufeff"), width)


def beginning(held: Held, raw: bytes, width: int) -> Iterator[Line]:
    """A message at the prompt: its line, and below it what it says, unless that is very much."""
    yield row(held, width)
    lines = pretty(raw.decode(errors="backslashreplace").removeprefix("\ufeff"), max(width - 4, 20), LONGEST_STRING)
    for line in islice(lines, MOST_LINES):
        yield [("", "    "), *line]
    if next(lines, None) is not None:
        yield [("folded", f"    … {size(len(raw))} in all: e {held.number} shows it in your editor")]


def _title(held: Held) -> Line:
    facts = held.facts
    method, target = facts["method"], facts["target"]
    line: Line = []
    if facts["kind"] in _ANSWERS:
        line.append(("words", _ANSWERS[facts["kind"]] + " " if method else f"{facts['kind']} to nothing known"))
    elif method is None:
        line.append(("noise", "not a message"))
    if method is not None:
        line.append(("method", shortened(visible(method), _LONGEST_NAME)))
    if target is not None:
        line += [("", " "), ("target", shortened(visible(target), _LONGEST_NAME))]
    return line
