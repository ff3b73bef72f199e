"""The transcript as text: for a terminal of any width, and for a pipe.

Every line is a list of (role, text) pieces; a terminal gives each role its colour (`mcpsniff.transcript.terminal`), a
pipe gets the texts alone. Nothing captured is in a piece before it was made visible.
"""

import re
import textwrap
from collections.abc import Callable, Iterable
from typing import Final

from mcpsniff.checks import REGISTRY, Finding
from mcpsniff.transcript.head import Entry
from mcpsniff.transcript.payload import FOLDED, Style, payload_lines
from mcpsniff.transcript.pretty import Line, Segment
from mcpsniff.transcript.rows import BLANK, CLOSE, NOTE, REPORT, STDERR, UNANSWERED, Row
from mcpsniff.transcript.safe import shortened, visible
from mcpsniff.transcript.units import duration, moment, size

WIDTH: Final = 100
"""Of a transcript that goes into a pipe or a file."""
NARROW: Final = 66
"""Below this width the details of a row stand on a line of their own."""

MARKS: Final = {"error": "✗", "warning": "▲", "note": "•", "info": "·"}
_ARROWS: Final = {"c2s": ("client", "→"), "s2c": ("server", "←")}

type Print = Callable[[Line], object]


class TextTranscript:
    """Prints the parts of a transcript, line by line, in the order in which it is called."""

    def __init__(self, print_line: Print, width: int = WIDTH, style: Style = FOLDED) -> None:
        self._print = print_line
        self.width = max(width, 30)
        self._style = style
        self._narrow = self.width < NARROW
        self._margin = 10 if self._narrow else 24
        self._repeated = ""

    def head(self, label: str, entries: Iterable[Entry]) -> None:
        """Print the head."""
        self._print([("title", visible(label) or "session")])
        names = 14
        for name, value, remark in entries:
            room = self.width - names
            lines = wrapped(visible(value), room) if value else [""]
            for index, line in enumerate(lines):
                name_shown = f"  {name if index == 0 else '':<{names - 2}}"
                last = index == len(lines) - 1
                tail: Line = [("remark", ("  " if line else "") + remark)] if remark and last else []
                self._print([("label", name_shown), ("plain", line), *tail])
        self._print([])
        legend = "→ client to server   ← server to client   ┬ ┴ a request and its answer"
        self._print([("remark", legend if len(legend) <= self.width else "→ from the client  ← from the server")])
        self._print([])

    def row(self, row: Row) -> None:
        """Print a row: its line, its payload, its findings."""
        title, details = _title(row), _details(row)
        if self._narrow:
            self._narrow_row(row, title, details)
        else:
            self._wide_row(row, title, details)
        if row.message is not None:
            for line in payload_lines(row.message, self._style, self.width - self._margin):
                self._print([("", " " * self._margin), *line])
        for finding in row.findings:
            self.finding(finding)
        if row.kind not in (STDERR, BLANK) and not row.findings:
            self._repeated = ""

    def finding(self, finding: Finding) -> None:
        """Print a finding. What to do about it is said once where the same fault repeats row by row."""
        severity = finding.severity
        head: Line = [(severity, f"{MARKS.get(severity, '•')} {severity} {finding.code} {visible(finding.name)}")]
        head.append(("remark", f", by {_blamed(finding.blame)}"))
        self._print([("", " " * self._margin), *head])
        indent = self._margin + 2
        self._wrap("plain", visible(finding.text), indent)
        if finding.code != self._repeated:
            if fix := what_to_do(finding.code):
                self._wrap("fix", f"Fix: {fix}", indent)
        self._repeated = finding.code

    def _wrap(self, role: str, text: str, indent: int) -> None:
        for line in wrapped(text, self.width - indent):
            self._print([("", " " * indent), (role, line)])

    def _wide_row(self, row: Row, title: Line, details: Line) -> None:
        number = f"#{row.n}" if row.kind != REPORT else ""
        start: Line = [
            ("time", f"{moment(row.t):>9}"),
            ("number", f"{number:>7}"),
            ("lane", f"  {row.lanes} "),
            _arrow(row),
            ("", " "),
        ]
        figures = _figures(row)
        room = self.width - self._margin - (18 if figures else 0)
        together = [*title, ("", "  "), *details] if details else title
        apart = bool(details) and _length(together) > room
        line = _cut(title if apart else together, room)
        if figures:
            line = [*line, ("", " " * (room - _length(line))), *figures]
        self._print([*start, *line])
        if apart:
            lanes = row.lanes.translate(_CONTINUED)
            self._print([("lane", f"{'':18}{lanes}{'':3}"), *_cut(details, self.width - self._margin)])

    def _narrow_row(self, row: Row, title: Line, details: Line) -> None:
        start: Line = [("time", f"{moment(row.t):>7}"), ("", " "), _arrow(row), ("", " ")]
        self._print([*start, *_cut(title, self.width - self._margin)])
        pieces: list[Line] = [[("number", f"#{row.n}")]] if row.kind != REPORT else []
        if details:
            pieces.append(details)
        if row.size is not None:
            pieces.append([("size", size(row.size))])
        if row.latency_us is not None:
            pieces.append([("latency", duration(row.latency_us))])
        line: Line = []
        for piece in pieces:
            line += [*([("remark", " · ")] if line else []), *piece]
        if row.kind != STDERR and line:
            self._print([("", " " * self._margin), *_cut(line, self.width - self._margin)])


_CONTINUED: Final = str.maketrans("┬├┴╵", "││  ")


def _title(row: Row) -> Line:
    """What the row is about: method and target, or what stands in their place."""
    if row.kind == STDERR:
        return [("stderr", "stderr │ "), ("stderr-text", visible(row.title))]
    if row.kind == BLANK:
        return [("noise", "blank line")]
    if row.kind == REPORT:
        return [("remark", f"about #{row.n}")]
    if row.kind == CLOSE:
        text = f"{row.title}: {visible(row.remark)}" if row.remark else row.title
        return [("loud" if row.loud else "milestone", text)]
    if row.kind == NOTE:
        return [("noise", visible(f"{row.title}: {row.remark}" if row.remark else row.title))]
    title: Line = []
    if row.kind == "invalid":
        title.append(("loud", visible(row.title)))
    elif row.title:
        title.append(("method", visible(row.title)))
    if row.target is not None:
        title.append(("target", (" " if title else "") + shortened(visible(row.target), 200)))
    return title


def _details(row: Row) -> Line:
    """Whom the message answers or cancels, how it ended, its id."""
    pieces: list[Segment] = []
    for index, word in enumerate(row.words):
        pieces.append(("bad" if row.loud and index == 0 else "words", word))
    if row.remark and row.kind not in (CLOSE, NOTE):
        pieces.append(("remark", shortened(visible(row.remark), 80)))
    if row.id is not None:
        pieces.append(("id", f"id {shortened(visible(row.id), 40)}"))
    line: Line = []
    for piece in pieces:
        line += [*([("remark", " · ")] if line else []), piece]
    return line


def _figures(row: Row) -> Line:
    if row.size is None and row.latency_us is None:
        return []
    bytes_shown = "" if row.size is None else size(row.size)
    latency = "" if row.latency_us is None else duration(row.latency_us)
    role = "waited" if row.kind == UNANSWERED else "latency"
    return [("size", f"{bytes_shown:>8}"), (role, f"{latency:>10}")]


def _arrow(row: Row) -> Segment:
    if row.kind == UNANSWERED:
        return ("loud" if row.loud else "remark", "✗" if row.loud else "…")
    if row.kind == CLOSE:
        return ("loud" if row.loud else "milestone", "■")
    return _ARROWS.get(row.direction or "", ("", " "))


def what_to_do(code: str) -> str:
    """The first sentence of what to do about a finding; the rest is for `mcpsniff explain`."""
    check = REGISTRY.get(code)
    if check is None or not check.fix:
        return ""
    sentence = re.split(r"(?<=[.!?]) (?=[A-Z`])", check.fix, maxsplit=1)[0]
    return visible(sentence.replace("``", ""))


def _blamed(blame: str) -> str:
    return blame if blame == "mcpsniff" else f"the {blame}"


def _length(line: Line) -> int:
    return sum(cells(text) for _, text in line)


def cells(text: str) -> int:
    """Columns that ``text`` takes on a terminal; East Asian characters and emoji take two."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def _cut(line: Line, room: int) -> Line:
    """The line in at most ``room`` columns."""
    if _length(line) <= room:
        return line
    kept: Line = []
    left = room - 1
    for role, text in line:
        if cells(text) <= left:
            kept.append((role, text))
            left -= cells(text)
            continue
        while text and cells(text) > left:
            text = text[: max(0, min(len(text) - 1, left))]
        kept.append((role, text + "…"))
        break
    return kept


def wrapped(text: str, width: int) -> list[str]:
    """``text`` in lines of at most ``width`` characters, broken between words where there are any."""
    return textwrap.wrap(text, max(width, 20), break_on_hyphens=False) or [""]
