"""The transcript as text: for a terminal of any width, and for a pipe.

Every line is a list of (role, text) pieces; a terminal gives each role its colour (`mcpsniff.transcript.terminal`), a
pipe gets the texts alone. Nothing captured is in a piece before it was made visible.
"""

from collections.abc import Callable, Iterable
from typing import Final

from mcpsniff.checks import Finding
from mcpsniff.transcript.advice import what_to_do
from mcpsniff.transcript.head import Entry
from mcpsniff.transcript.layout import cells, clipped, cut, fitted, flowed, hard_wrapped, length, middle_cut, wrapped
from mcpsniff.transcript.payload import FOLDED, Style, body_lines, payload_lines
from mcpsniff.transcript.pretty import Line, Segment
from mcpsniff.transcript.rows import BLANK, CLOSE, EDIT, HTTP, NOTE, REPORT, STDERR, UNANSWERED, Row
from mcpsniff.transcript.safe import shortened, visible
from mcpsniff.transcript.servers import short
from mcpsniff.transcript.units import duration, moment, size

WIDTH: Final = 100
"""Of a transcript that goes into a pipe or a file."""
NARROW: Final = 66
"""Below this width the details of a row stand on a line of their own."""
WIDE: Final = 80
"""Below this width names of servers are short in the lane of HTTP."""
NARROWEST: Final = 36
"""Below this width the values of the head stand below their names."""

STDERR_LINES: Final = 10
"""Lines of the transcript that one line of stderr takes at most, unless payloads are shown whole."""

LONGEST_TARGET: Final = 60
LONGEST_EVENT_ID: Final = 12
SHORTEST_TARGET: Final = 24
"""Cells that the target of an HTTP request has at least, if it needs them, however much is said of it."""
LONGEST_SERVER: Final = 20
SHORTEST_SERVER: Final = 6
"""Cells of a server's name on a row."""
COLOURS: Final = 6
"""How many roles ``who-0`` … there are."""

MARKS: Final = {"error": "✗", "warning": "▲", "note": "•", "info": "·"}
_BAD: Final = ("errored", "error", "tool error", "malformed", "abandoned")
_ARROWS: Final = {"c2s": ("client", "→"), "s2c": ("server", "←")}

type Print = Callable[[Line], object]


class TextTranscript:
    """Prints the parts of a transcript, line by line, in the order in which it is called."""

    def __init__(self, print_line: Print, width: int = WIDTH, style: Style = FOLDED) -> None:
        self._print = print_line
        self.width = max(width, 20)
        self._style = style
        self._narrow = self.width < NARROW
        self._margin = 4 if self._narrow else 24
        self._place = min(self.width // 6, LONGEST_SERVER)
        self._repeated = ""

    def head(self, label: str, entries: Iterable[Entry]) -> None:
        """Print the head."""
        self._print([("title", fitted(visible(label), self.width) or "session")])
        self.entries(entries)
        self._print([])
        legend = "→ client to server   ← server to client   ┬ ┴ a request and its answer"
        if len(legend) > self.width:
            legend = "→ from the client  ← from the server"
        self._wrap("remark", legend, 0)
        self._print([])

    def entries(self, entries: Iterable[Entry]) -> None:
        """Print lines of the head."""
        for entry in entries:
            self._entry(entry)

    def _entry(self, entry: Entry) -> None:
        """Print a line of the head: the name, and beside it the value, or below it where there is no room."""
        margin = 16 if self.width >= NARROWEST else 4
        room = self.width - margin
        value, remark = visible(entry.value), entry.remark
        if entry.is_path:
            lines = [value]
        else:
            lines = wrapped(value, room) if entry.lines is None else clipped(value, room, entry.lines)
        shown: list[Line] = [[("plain", line)] for line in lines]
        if remark and value and length(shown[-1]) + 2 + cells(remark) <= room:
            shown[-1].append(("remark", f"  {remark}"))
        elif remark:
            remarks: list[Line] = [[("remark", line)] for line in wrapped(remark, room)]
            shown = [*shown, *remarks] if value else remarks
        if margin == 4:
            self._print([("label", f"  {entry.name}")])
        for index, line in enumerate(shown):
            name = entry.name if index == 0 and margin > 4 else ""
            self._print([("label", f"  {name:<{margin - 2}}"), *line])

    def end(self, text: str) -> None:
        """Print how the recording ends."""
        self._print([])
        self._wrap("loud", text, 0)

    def row(self, row: Row) -> None:
        """Print a row: its line, its payload, its findings."""
        title, details = _title(row), _details(row)
        if row.kind == STDERR:
            self._stderr(row)
        elif row.kind == HTTP:
            self._exchange_of_http(row, details)
        elif self._narrow:
            self._narrow_row(row, title, details)
        else:
            self._wide_row(row, title, details)
        if row.message is not None:
            is_new = row.envelope is None
            for line in payload_lines(row.message, self._style, self.width - self._margin - 2, has_envelope=is_new):
                self._print([("", " " * self._margin), *line])
            if not is_new and self._style == FOLDED:
                self._print([("", " " * self._margin), ("remark", f"_meta as #{row.envelope}")])
        if row.body is not None:
            for line in body_lines(row.body, self._style, self.width - self._margin - 2):
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
        if finding.code != self._repeated and (fix := what_to_do(finding)):
            self._wrap("fix", f"Fix: {fix}", indent)
        self._repeated = finding.code

    def _wrap(self, role: str, text: str, indent: int) -> None:
        for line in wrapped(text, self.width - indent):
            self._print([("", " " * indent), (role, line)])

    def _wide_row(self, row: Row, title: Line, details: Line) -> None:
        start = [*self._start(row), arrow(row), ("", " "), *_mark(row, self._place)]
        if row.kind in (CLOSE, NOTE):
            self._sentence(start, title)
            return
        figures = _figures(row)
        room = self.width - length(start) - (18 if figures else 0)
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
        if apart and row.kind == EDIT:
            self._below(row, details)
        elif apart:
            lanes = row.lanes.translate(_CONTINUED)
            self._print([("lane", f"{'':18}{lanes}{'':3}"), *cut(said[1:], self.width - self._margin)])

    def _below(self, row: Row, details: Line) -> None:
        """Print all that is said of a row on lines below it."""
        first: Line = [("lane", f"{'':18}{row.lanes.translate(_CONTINUED)}")]
        first.append(("", " " * (self._margin - length(first))))
        words = " · ".join(text for _, text in details)
        for text in wrapped(words, self.width - self._margin):
            self._print([*first, ("words", text)])

    def _start(self, row: Row) -> Line:
        """Time, number and lanes; a late time or a high number takes its room from the other."""
        time, number = f"{moment(row.t):>9}", f"#{row.n}" if row.kind != REPORT else ""
        return [
            ("time", time),
            ("number", f"{number:>{max(16 - len(time), len(number) + 1)}}"),
            ("lane", f"  {row.lanes} "),
        ]

    def _sentence(self, start: Line, title: Line) -> None:
        """Print what is said in words, on as many lines as it takes."""
        for text in wrapped(title[0][1], self.width - length(start)):
            self._print([*start, (title[0][0], text)])
            start = [("", " " * length(start))]

    def _stderr(self, row: Row) -> None:
        """Print a line of stderr, in a lane of its own; a long one goes on below."""
        start: Line = [("time", f"{moment(row.t):>7}")] if self._narrow else [*self._start(row), ("", " ")]
        label = "" if self.width < NARROWEST else " stderr"
        room = self.width - length(start) - len(label) - 3
        text = visible(row.title)
        # What is indented was laid out by its author, such as the marks below a line of a traceback.
        lines = list(hard_wrapped(text, room)) if text.startswith(" ") else wrapped(text, room)
        shown = lines if self._style.whole else lines[:STDERR_LINES]
        if len(shown) < len(lines):
            shown[-1] = fitted("… --payload shows all", room)
        for index, text in enumerate(shown):
            mark = label if index == 0 else " " * len(label)
            self._print([*start, ("stderr", f"{mark} │ "), ("stderr-text", text)])
            start = [("", " " * length(start))]

    def _exchange_of_http(self, row: Row, details: Line) -> None:
        """Print an HTTP exchange, in a lane of its own: on one line, or with what is said of it below."""
        if self._narrow:
            details = [("number", f"#{row.n}"), *details, *_figures_of_http(row)]
        start: Line = [("time", f"{moment(row.t):>7}")] if self._narrow else [*self._start(row), ("", " ")]
        if self.width >= NARROWEST:
            start.append(("http", " http"))
        start.append(("http", " │ "))
        margin = length([*start, *_mark(row, 0)])
        start += _mark(row, self._place if self.width >= WIDE else min(self._place, SHORTEST_SERVER))
        figures = (
            ""
            if self._narrow
            else "".join(f" {text:>{8 if role == 'id' else 9}}" for role, text in _figures_of_http(row))
        )
        room = self.width - length(start) - len(figures)
        said: Line = []
        for piece in details:
            said += [("remark", " · " if said else "  "), piece]
        title = http_title(row, room - length(said))
        is_apart = length(title) + length(said) > room
        line = cut(http_title(row, room) if is_apart else [*title, *said], room)
        if figures:
            line = [*line, ("", " " * (self.width - length(start) - length(line) - len(figures))), ("http", figures)]
        self._print([*start, *line])
        if is_apart:
            self._below_http(row, details, margin)

    def _below_http(self, row: Row, details: Line, margin: int) -> None:
        """Print what is said of an HTTP exchange on lines below it."""
        first: Line = [("", " " * margin)]
        if not self._narrow:
            lanes = row.lanes.translate(_CONTINUED)
            first = [("lane", f"{'':18}{lanes}{'':{margin - 18 - len(lanes)}}")]
        long = [piece for piece in details if length([piece]) > self.width - margin]
        for line in flowed([[piece] for piece in details if piece not in long], self.width - margin, 0, " · "):
            self._print([*first, *line[1:]])
        for role, text in long:
            for part in wrapped(text, self.width - margin):
                self._print([*first, (role, part)])

    def _narrow_row(self, row: Row, title: Line, details: Line) -> None:
        start: Line = [("time", f"{moment(row.t):>7}"), ("", " "), arrow(row), ("", " "), *_mark(row, self._place)]
        room = self.width - length(start)
        if row.kind in (CLOSE, NOTE):
            self._sentence(start, title)
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


def http_title(row: Row, room: int) -> Line:
    """Status, method and target, or what stands in their place; the target is cut so that all takes ``room`` cells."""
    title: Line = []
    if row.status:
        role = "bad" if row.loud else "noise" if row.odd else "http"
        title.append((role, row.status))
    if row.title:
        title.append(("http", f"{' ' if title else ''}{shortened(visible(row.title), LONGEST_TARGET)}"))
    if row.target is not None:
        target = visible(row.target)
        title.append(
            ("http", f"{' ' if title else ''}{fitted(target, max(room - length(title) - 1, SHORTEST_TARGET))}")
        )
    return title


def _figures_of_http(row: Row) -> Line:
    """Connection and latency, which have columns of their own where there is room for them."""
    figures: Line = [] if row.connection is None else [("id", f"conn {row.connection}")]
    return figures if row.latency_us is None else [*figures, ("http", duration(row.latency_us))]


def _mark(row: Row, room: int) -> Line:
    """The number of its conversation and the server, each where there are several; ``room`` is that of the server."""
    number = row.conversation
    place = middle_cut(visible(short(row.server)), room) if row.server and room >= SHORTEST_SERVER else ""
    named = " ".join(filter(None, ("" if number is None else str(number), place)))
    return [(f"who-{(number or 0) % COLOURS}", f"[{named}] ")] if named else []


def _details(row: Row) -> Line:
    """Whom the message answers or cancels, how it ended, its id."""
    pieces: Line = []
    pieces.extend(("bad" if word.startswith(_BAD) else "words", word) for word in row.words)
    if row.remark and row.kind not in (CLOSE, NOTE):
        pieces.append(("remark", shortened(visible(row.remark), 500 if row.kind in (HTTP, EDIT) else 80)))
    if row.event_id is not None:
        event = shortened(visible(row.event_id), LONGEST_EVENT_ID)
        pieces.append(("id", f"after event {event}" if row.is_after else f"event {event}"))
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
    if row.kind == EDIT:
        return ("milestone", "⇢" if row.direction == "c2s" else "⇠")
    if row.kind == CLOSE:
        return ("loud" if row.loud else "milestone", "■")
    return _ARROWS.get(row.direction or "", ("", " "))


def blamed(blame: str) -> str:
    """The one to blame, as it stands after ``by``."""
    return blame if blame == "mcpsniff" else f"the {blame}"
