"""Just enough of a terminal to see what is left on it."""

import re
import unicodedata

_PIECE = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])|(\r)|(\n)|([^\x00-\x1f\x7f\x80-\x9f])", re.DOTALL)


class Terminal:
    """Shows text on lines of ``columns`` cells; the lines above are kept. Anything it does not know is an error."""

    def __init__(self, columns: int) -> None:
        self.columns = columns
        self.rows: list[list[str]] = [[]]
        self.row = self.column = 0

    def feed(self, text: str) -> "Terminal":
        at = 0
        while at < len(text):
            piece = _PIECE.match(text, at)
            assert piece, f"a control sequence that nobody asked for: {text[at : at + 20]!r}"
            at = piece.end()
            if piece[2]:
                self._control(piece[1], piece[2])
            elif piece[3]:
                self.column = 0
            elif piece[4]:
                self._down()
            else:
                self._put(piece[5])
        return self

    @property
    def lines(self) -> list[str]:
        return ["".join(row).rstrip() for row in self.rows]

    @property
    def shown(self) -> str:
        return "\n".join(self.lines)

    def _control(self, number: str, what: str) -> None:
        if what == "A":
            self.row -= int(number or 1)
            assert self.row >= 0
        elif what == "J":
            assert number in ("", "0")
            del self.rows[self.row + 1 :]
            del self.rows[self.row][self.column :]
        else:
            assert what == "m", f"\\x1b[{number}{what}"

    def _down(self) -> None:
        self.row += 1
        if self.row == len(self.rows):
            self.rows.append([])

    def _put(self, character: str) -> None:
        wide = unicodedata.east_asian_width(character) in "WF"
        if self.column + wide >= self.columns:
            self._down()
            self.column = 0
        row = self.rows[self.row]
        row.extend(" " * (self.column - len(row)))
        row[self.column : self.column + 1 + wide] = [character, *([""] if wide else [])]
        self.column += 1 + wide
