"""What is wrong with a filter expression, and where: the sentence, the expression, and a caret below the place."""

from difflib import get_close_matches
from typing import Final

from mcpsniff.errors import UsageError

ROOM: Final = 72
"""Columns of the expression that are shown; of a longer one only the part around the fault."""
_LONGEST_WORD: Final = 40
_INDENT: Final = "  "


class FilterError(UsageError):
    """A filter expression that cannot be read. Its text is three lines: what is wrong, the expression, the caret.

    ``column`` is the place as a number of characters from 1; the caret stands below it also after characters that take
    two columns of a terminal. ``suggestion`` is what may have been meant, empty where nothing comes near.
    """

    def __init__(self, sentence: str, expression: str, at: int, suggestion: str = "") -> None:
        self.column = at + 1
        self.suggestion = suggestion
        meant = f"; did you mean {_visible(suggestion)}?" if suggestion else ""
        before, after = _window(_visible(expression[:at]), _visible(expression[at:]))
        self._lines = (
            f"filter, column {self.column}: {_visible(sentence)}{meant}",
            f"{_INDENT}{before}{after}",
            f"{_INDENT}{' ' * _cells(before)}^",
        )
        super().__init__("\n".join(self._lines))

    @property
    def lines(self) -> tuple[str, ...]:
        """What is wrong, the expression, the caret."""
        return self._lines


class BadValueError(ValueError):
    """The value of a term cannot be read; ``at`` counts characters from the value's beginning."""

    def __init__(self, sentence: str, at: int = 0, suggestion: str = "") -> None:
        super().__init__(sentence)
        self.at = at
        self.suggestion = suggestion


def nearest(word: str, known: list[str]) -> str:
    """The one of ``known`` that ``word`` comes nearest to; empty if none is near."""
    near = get_close_matches(word[:_LONGEST_WORD].lower(), known, n=1, cutoff=0.6)
    return near[0] if near else ""


def _window(before: str, after: str) -> tuple[str, str]:
    """The two halves of the expression, cut so that they fit into ROOM columns with the place between them."""
    if _cells(before) + _cells(after) <= ROOM:
        return before, after
    short = before[-ROOM:]
    while _cells(short) > ROOM // 2:
        short = short[1:]
    rest = after[:ROOM]
    while _cells(short) + _cells(rest) > ROOM - 2:
        rest = rest[:-1]
    return ("…" if short != before else "") + short, rest + ("…" if rest != after else "")


def _visible(text: str) -> str:
    from mcpsniff.transcript.safe import visible

    return visible(text)


def _cells(text: str) -> int:
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)
