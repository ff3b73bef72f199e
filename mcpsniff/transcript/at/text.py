"""The page of one event, as text."""

from typing import Final

from mcpsniff.capture.records import Header
from mcpsniff.checks import REGISTRY, Finding
from mcpsniff.protocol.edits import HELD, Edit
from mcpsniff.protocol.events import Close, Note, Stderr
from mcpsniff.protocol.exchange import Exchange
from mcpsniff.protocol.http import Http
from mcpsniff.protocol.message import INVALID
from mcpsniff.transcript.at.bodies import bodies, shown_lines
from mcpsniff.transcript.at.facts import facts
from mcpsniff.transcript.at.found import BYTES_KEPT, Found
from mcpsniff.transcript.at.hexpane import hex_lines, odd_places
from mcpsniff.transcript.at.http import heads
from mcpsniff.transcript.http_words import bare_title
from mcpsniff.transcript.layout import cells, fitted, flowed, hard_wrapped, length, wrapped
from mcpsniff.transcript.payload import NONE, WHOLE, body_lines, payload_lines
from mcpsniff.transcript.pretty import Line
from mcpsniff.transcript.rows import BLANK
from mcpsniff.transcript.safe import visible
from mcpsniff.transcript.text import MARKS, NARROWEST, Print, TextTranscript, blamed
from mcpsniff.transcript.units import count, size
from mcpsniff.wire.frames import Frame

_MARGIN: Final = 14
_LEAST: Final = 10
"""Cells that are the least for the value of a header beside its name."""


class EventPage:
    """Prints one event whole: its facts, its payload, its bytes, its findings explained, its exchange."""

    def __init__(self, print_line: Print, width: int, *, hexadecimal: bool = False) -> None:
        self._print = print_line
        self._width = max(width, 20)
        self._hexadecimal = hexadecimal

    def show(self, found: Found, header: Header) -> None:
        """Print the page."""
        self._print([("title", fitted(visible(_title(found)), self._width))])
        for known in facts(found, header):
            self._known(known.name, visible(known.value), visible(known.remark))
        self._payload(found)
        self._heads(found)
        self._bodies(found)
        self._changed(found)
        self._bytes(found)
        self._bytes_of_bodies(found)
        for finding in found.findings:
            self._finding(finding)
        self._exchange(found)

    def _known(self, name: str, value: str, remark: str) -> None:
        margin = _MARGIN if self._width >= NARROWEST else 4
        if margin == 4:
            self._print([("label", f"  {name}")])
        parts = [("plain", value)] if value else []
        if remark:
            parts.append(("remark", remark))
        lines = [(role, line) for role, text in parts for line in wrapped(text, self._width - margin)]
        if margin > 4 and len(lines) == 2 == len(parts) and margin + cells(value) + 2 + cells(remark) <= self._width:
            self._print([("label", f"  {name:<{margin - 2}}"), lines[0], ("", "  "), lines[1]])
            return
        for index, line in enumerate(lines or [("remark", "–")]):
            shown = name if index == 0 and margin > 4 else ""
            self._print([("label", f"  {shown:<{margin - 2}}"), line])

    def _heading(self, text: str) -> None:
        self._print([])
        for line in wrapped(text, self._width):
            self._print([("heading", line)])

    def _payload(self, found: Found) -> None:
        if found.message is not None:
            self._heading("Payload" if found.message.kind != INVALID else "What was sent")
            for line in payload_lines(found.message, WHOLE, self._width - 4):
                self._print([("", "  "), *line])
        elif isinstance(found.event, Stderr):
            self._heading("What was written")
            for text in wrapped(visible(found.event.text), self._width - 2):
                self._print([("", "  "), ("stderr-text", text)])

    def _heads(self, found: Found) -> None:
        """Print the heads of the HTTP exchange, as they were recorded."""
        if found.http is None:
            return
        for title, lines in heads(found.http):
            self._heading(title)
            for name, value in lines:
                start: Line = [("name", f"{visible(name)}: ")] if name else []
                room = self._width - 2 - length(start)
                if room < _LEAST:
                    for text in hard_wrapped(start[0][1].rstrip(), self._width - 2):
                        self._print([("", "  "), ("name", text)])
                    start, room = [("", "  ")], self._width - 4
                text, *rest = hard_wrapped(visible(value), room)
                self._print([("", "  "), *start, ("plain", text)])
                for text in hard_wrapped("".join(rest), self._width - 4) if rest else ():
                    self._print([("", "    "), ("plain", text)])

    def _bodies(self, found: Found) -> None:
        """Print bodies that carry no message."""
        if not isinstance(found.event, Http):
            self._refusal(found)
            return
        for shown in bodies(found.event):
            self._heading(f"What the {shown.of} says")
            for line in shown_lines(shown, self._width - 4):
                self._print([("", "  "), *line])

    def _bytes_of_bodies(self, found: Found) -> None:
        """Print their bytes, without their content coding, where that is asked for."""
        if not (self._hexadecimal and isinstance(found.event, Http)):
            return
        for shown in bodies(found.event):
            self._heading(f"Bytes of the {shown.of}'s body")
            for line in hex_lines(shown.body.kept, 0, self._width - 2, everything=True, has_cr=True):
                self._print([("", "  "), *line])
            if shown.cut:
                self._wrap("remark", shown.cut)

    def _refusal(self, found: Found) -> None:
        """Print what the body of a refusal of a message says."""
        body = None if found.http is None else found.http.answered
        if body is None or not body.text:
            return
        self._heading("What the response says")
        for line in body_lines(body, WHOLE, self._width - 4):
            self._print([("", "  "), *line])

    def _changed(self, found: Found) -> None:
        """Print what was changed on the way: what came, and what left in its place."""
        event = found.event
        if isinstance(event, Edit) and (event.of is not None or event.message is not None):
            self._messages(event)
            return
        if not isinstance(event, Note) or event.kind != "rewrite":
            return
        data = event.fields.get("data")
        before = b"".join(data for _, data in found.pieces)
        for title, said in (
            ("What came", before),
            ("What left in its place", data if isinstance(data, bytes) else b""),
        ):
            self._heading(title)
            for text in said.decode(errors="backslashreplace").splitlines() or ["(nothing)"]:
                for line in hard_wrapped(visible(text), self._width - 4):
                    self._print([("", "  "), ("plain", line)])

    def _messages(self, edit: Edit) -> None:
        """Print what came and what left, as messages."""
        came = "What came, and left later" if edit.change == HELD else "What came"
        left = "What left in its place" if edit.of is not None else "What left"
        for title, message in ((came, edit.of), (left, edit.message)):
            if message is not None:
                self._heading(title)
                for line in payload_lines(message, WHOLE, self._width - 4):
                    self._print([("", "  "), *line])
        if edit.message is None and edit.change != HELD:
            self._heading(left)
            self._wrap("remark", count(len(edit.left), "message") if edit.left else "(nothing)")

    def _bytes(self, found: Found) -> None:
        """Print the bytes in hexadecimal where they are no text, or where that is asked for."""
        has_cr = _is_of_http(found)
        odd = [len(odd_places(data, has_cr=has_cr)) for _, data in found.pieces]
        if not found.pieces or not (self._hexadecimal or any(odd)):
            return
        what = (
            "all of it" if self._hexadecimal else f"{count(sum(odd), 'byte')} that are no text, and what is near them"
        )
        if sum(odd) == 1 and not self._hexadecimal:
            what = "a byte that is no text, and what is near it"
        self._heading(f"Bytes ({what})")
        for span, data in found.pieces:
            for line in hex_lines(data, span.start, self._width - 2, everything=self._hexadecimal, has_cr=has_cr):
                self._print([("", "  "), *line])
            if len(data) < span.stop - span.start:
                self._wrap("remark", f"the first {size(BYTES_KEPT)} only")

    def _finding(self, finding: Finding) -> None:
        """Print a finding with its whole explanation."""
        self._print([])
        head = f"{MARKS.get(finding.severity, '•')} {finding.severity} {finding.code} {visible(finding.name)}"
        for line in flowed([[(finding.severity, head)], [("remark", f", by {blamed(finding.blame)}")]], self._width, 0):
            self._print(line)
        self._wrap("plain", visible(finding.text))
        check = REGISTRY.get(finding.code)
        for paragraph in "" if check is None else check.doc.split("\n\n"):
            self._print([])
            self._wrap("fix" if paragraph.startswith("Fix:") else "plain", _prose(paragraph))

    def _exchange(self, found: Found) -> None:
        """Print the other messages of its exchange, whole; its own row without what stands above."""
        if len(found.members) < 2:
            return
        self._heading("What it refers to" if found.exchange is None else "The whole exchange")
        whole, brief = (TextTranscript(self._print, self._width, style) for style in (WHOLE, NONE))
        for row in found.members.values():
            if row is found.row:
                brief.row(row)
            else:
                whole.row(row)
        if found.passed_over:
            self._wrap("remark", f"… {count(found.passed_over, 'more progress notification')}")

    def _wrap(self, role: str, text: str) -> None:
        for line in wrapped(text, self._width - 2):
            self._print([("", "  "), (role, line)])


def _is_of_http(found: Found) -> bool:
    """True if its lines end as those of HTTP do: with CR LF, in an event stream also with CR alone."""
    is_in_frame = found.frame is not None and found.frame.http is not None
    return (
        is_in_frame
        or found.http is not None
        or (isinstance(found.event, Note) and found.event.kind in ("rewrite", "mask"))
    )


def _prose(paragraph: str) -> str:
    return " ".join(paragraph.split()).replace("``", "")


def _title(found: Found) -> str:
    """``#14 response: tools/call compile``."""
    event, row = found.event, found.row
    if found.message is not None:
        kind = found.message.kind
    else:
        kinds = {Frame: "line", Exchange: "exchange", Http: "http", Stderr: "stderr", Close: "close", Note: "note"}
        kinds[Edit] = "edit"
        kind = kinds.get(type(event), "event")
    said = ""
    if row is not None and row.kind != BLANK and row.title != kind and not isinstance(event, Stderr):
        said = " ".join(filter(None, (row.title, row.target)))
    if not said and found.exchange is not None:
        said = " ".join(filter(None, (found.exchange.method, found.exchange.target)))
    if isinstance(event, Http):
        said = " ".join(filter(None, (event.exchange.method, event.exchange.target)))
    if isinstance(event, Frame) and found.message is None:
        kind = "blank line" if event.sse is None else bare_title(event)
        said = said if row is None or event.sse is None else row.target or ""
    return f"#{found.number} {kind}{f': {said}' if said else ''}"
