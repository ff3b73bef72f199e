"""The transcript as text: for a terminal of any width, and for a pipe.

Every line is a list of (role, text) pieces; a terminal gives each role its colour (`mcpsniff.transcript.terminal`), a
pipe gets the texts alone. Nothing captured is in a piece before it was made visible.
"""

import re
from collections.abc import Callable, Iterable
from typing import Final

from mcpsniff.checks import REGISTRY, Finding
from mcpsniff.transcript.head import Entry
from mcpsniff.transcript.layout import cells, cut, flowed, length, wrapped
from mcpsniff.transcript.payload import FOLDED, Style, payload_lines
from mcpsniff.transcript.pretty import Line, Segment
from mcpsniff.transcript.rows import BLANK, CLOSE, NOTE, REPORT, STDERR, UNANSWERED, Row
from mcpsniff.transcript.safe import shortened, visible
from mcpsniff.transcript.units import duration, moment, size

WIDTH: Final = 100
"""Of a transcript that goes into a pipe or a file."""
NARROW: Final = 66
"""Below this width the details of a row stand on a line of their own."""

STDERR_LINES: Final = 10
"""Lines of the transcript that one line of stderr takes at most, unless payloads are shown whole."""

MARKS: Final = {"error": "✗", "warning": "▲", "note": "•", "info": "·"}
_BAD: Final = ("errored", "error", "tool error", "malformed", "abandoned")
_ARROWS: Final = {"c2s": ("client", "→"), "s2c": ("server", "←")}

type Print = Callable[[Line], object]


class TextTranscript:
    """Prints the parts of a transcript, line by line, in the order in which it is called."""

    def __init__(self, print_line: Print, width: int = WIDTH, style: Style = FOLDED) -> None:
        self._print = print_line
        self.width = max(width, 30)
        self._style = style
        self._narrow = self.width < NARROW
        self._margin = 4 if self._narrow else 24
        self._repeated = ""

    def head(self, label: str, entries: Iterable[Entry]) -> None:
        """Print the head."""
        self._print([("title", shortened(visible(label), self.width) or "session")])
        names = 16
        for name, value, remark in entries:
            shown: list[Line] = [[("plain", line)] for line in wrapped(visible(value), self.width - names)]
            if remark and value and length(shown[-1]) + 2 + cells(remark) <= self.width - names:
                shown[-1].append(("remark", f"  {remark}"))
            elif remark:
                lines: list[Line] = [[("remark", line)] for line in wrapped(remark, self.width - names)]
                shown = [*shown, *lines] if value else lines
            for index, line in enumerate(shown):
                self._print([("label", f"  {name if index == 0 else '':<{names - 2}}"), *line])
        self._print([])
        legend = "→ client to server   ← server to client   ┬ ┴ a request and its answer"
        self._print([("remark", legend if len(legend) <= self.width else "→ from the client  ← from the server")])
        self._print([])

    def row(self, row: Row) -> None:
        """Print a row: its line, its payload, its findings."""
        title, details = _title(row), _details(row)
        if row.kind == STDERR:
            self._stderr(row)
        elif self._narrow:
            self._narrow_row(row, title, details)
        else:
            self._wide_row(row, title, details)
        if row.message is not None:
            for line in payload_lines(row.message, self._style, self.width - self._margin - 2):
                self._print([("", " " * self._margin), *line])
        for finding in row.findings:
            self.finding(finding)
        if row.kind not in (STDERR, BLANK) and not row.findings:
            self._repeated = ""

    def finding(self, finding: Finding) -> None:
        """Print a finding. What to do about it is said once where the same fault repeats row by row."""
        severity = finding.severity
        head: Line = [(severity, f"{MARKS.get(severity, '•')} {severity} {finding.code} {visible(finding.name)}")]
        for line in flowed([head, [("remark", f", by {blamed(finding.blame)}")]], self.width, self._margin):
            self._print(line)
        indent = self._margin + 2
        self._wrap("plain", visible(finding.text), indent)
        if finding.code != self._repeated and (fix := what_to_do(finding.code)):
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
            arrow(row),
            ("", " "),
        ]
        figures = _figures(row)
        room = self.width - self._margin - (18 if figures else 0)
        said: Line = []
        for piece in details:
            said += [("remark", " · " if said else "  "), piece]
        apart = bool(said) and length(title) + length(said) > room
        line = cut(title if apart else [*title, *said], room)
        if figures:
            gap = room - length(line) + (0 if row.size is not None else 8)
            line = [
                *line,
                ("", " " * gap),
                *((role, f"{text:>{8 if role == 'size' else 10}}") for role, text in figures),
            ]
        self._print([*start, *line])
        if apart:
            lanes = row.lanes.translate(_CONTINUED)
            self._print([("lane", f"{'':18}{lanes}{'':3}"), *cut(said[1:], self.width - self._margin)])

    def _stderr(self, row: Row) -> None:
        """Print a line of stderr, in a lane of its own; a long one goes on below."""
        start: Line = [("time", f"{moment(row.t):>{7 if self._narrow else 9}}")]
        if not self._narrow:
            start += [("number", f"{f'#{row.n}':>7}"), ("lane", f"  {row.lanes} "), ("", " ")]
        room = self.width - length(start) - 10
        lines = wrapped(visible(row.title), room)
        shown = lines if self._style.whole else lines[:STDERR_LINES]
        if len(shown) < len(lines):
            shown[-1] = "… --payload shows all"
        for index, text in enumerate(shown):
            self._print([*start, ("stderr", f" {'stderr' if index == 0 else '':<6} │ "), ("stderr-text", text)])
            start = [("", " " * length(start))]

    def _narrow_row(self, row: Row, title: Line, details: Line) -> None:
        start: Line = [("time", f"{moment(row.t):>7}"), ("", " "), arrow(row), ("", " ")]
        room = self.width - length(start)
        if row.kind in (CLOSE, NOTE):
            for text in wrapped(title[0][1], room):
                self._print([*start, (title[0][0], text)])
                start = [("", " " * length(start))]
            return
        self._print([*start, *cut(title, room)])
        if row.kind == REPORT:
            return
        pieces: list[Line] = [[("number", f"#{row.n}")], *([piece] for piece in details)]
        pieces += [[figure] for figure in _figures(row)]
        for line in flowed(pieces, self.width, self._margin, " · "):
            self._print(line)


_CONTINUED: Final = str.maketrans("┬├┴╵", "││  ")


def _title(row: Row) -> Line:
    """What the row is about: method and target, or what stands in their place."""
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
    pieces: Line = []
    pieces.extend(("bad" if word.startswith(_BAD) else "words", word) for word in row.words)
    if row.remark and row.kind not in (CLOSE, NOTE):
        pieces.append(("remark", shortened(visible(row.remark), 80)))
    if row.id is not None:
        pieces.append(("id", f"id {shortened(visible(row.id), 40)}"))
    return pieces


def _figures(row: Row) -> Line:
    figures: Line = [] if row.size is None else [("size", size(row.size))]
    if row.latency_us is not None:
        figures.append(("waited" if row.kind == UNANSWERED else "latency", duration(row.latency_us)))
    return figures


def arrow(row: Row) -> Segment:
    """What stands before the title: who sent it, or what kind of end it is."""
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


def blamed(blame: str) -> str:
    """The one to blame, as it stands after ``by``."""
    return blame if blame == "mcpsniff" else f"the {blame}"
