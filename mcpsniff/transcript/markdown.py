"""The transcript as Markdown, fit to attach to a bug report.

Captured text stands in code spans and in fenced blocks only, where Markdown and HTML interpret nothing: no captured
link, picture, heading, table or element comes alive. Findings come first, the worst before the others, with links to
the messages; so the messages are kept in a temporary file until the end of the capture has been read.
"""

import re
import tempfile
from collections.abc import Iterable
from typing import BinaryIO, Final

from mcpsniff import __version__
from mcpsniff.checks import REGISTRY, Finding
from mcpsniff.transcript.advice import what_to_do
from mcpsniff.transcript.closing import and_more, closing_lines, places
from mcpsniff.transcript.head import Entry
from mcpsniff.transcript.layout import clipped
from mcpsniff.transcript.payload import FOLDED, Style, body_lines, payload_lines
from mcpsniff.transcript.pretty import NOTE as PAYLOAD_NOTE
from mcpsniff.transcript.pretty import Line
from mcpsniff.transcript.rows import BLANK, CLOSE, EDIT, HTTP, NOTE, REPORT, STDERR, UNANSWERED, Row
from mcpsniff.transcript.safe import markdown_code, markdown_fence, markdown_text, shortened, visible
from mcpsniff.transcript.session import Session, write
from mcpsniff.transcript.summary import Fault, Summary
from mcpsniff.transcript.text import STDERR_LINES, blamed
from mcpsniff.transcript.units import count, duration, moment, size

WIDTH: Final = 100
WRITTEN_BY: Final = f"Written by mcpsniff {__version__}. The numbers are those of the events in its JSON output."
_IN_MEMORY: Final = 4 * 1024 * 1024
_LONGEST_STDERR: Final = WIDTH * STDERR_LINES

_NUMBER: Final = re.compile(r"\\#(\d+)")
_WHO: Final = {"c2s": "client → server", "s2c": "client ← server"}


def write_markdown(
    session: Session, stream: BinaryIO, style: Style = FOLDED, *, now_us: int | None = None, running: bool = False
) -> None:
    """Write the whole transcript to ``stream``; ``now_us`` and ``running`` as in `mcpsniff.transcript.session.write`.

    Raises OSError as the stream or the temporary file does.
    """
    with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY) as kept:
        page = MarkdownPage(kept, style)
        summary = write(session, page, now_us=now_us, running=running)
        page.finish()
        stream.writelines(_encoded(line) for line in _opening(page, summary))
        kept.seek(0)
        while block := kept.read(1 << 16):
            stream.write(block)
        stream.writelines(_encoded(line) for line in _ending(summary))


class MarkdownPage:
    """Takes the parts of a transcript; writes the messages to ``kept`` and remembers the head.

    ``mark`` is put before the numbers where several sessions are in one document, ``among`` is then the session's
    label.
    """

    def __init__(
        self, kept: "tempfile.SpooledTemporaryFile[bytes]", style: Style, mark: str = "", among: str = ""
    ) -> None:
        self._kept = kept
        self._style = style
        self._mark = mark
        self._among = among
        self._stderr: list[str] = []
        self.label = ""
        self.entries: list[Entry] = []

    def head(self, label: str, entries: Iterable[Entry]) -> None:
        """Remember the head."""
        self.label, self.entries = label, list(entries)

    def row(self, row: Row) -> None:
        """Write a row: its line, its payload in a fenced block, its findings."""
        if row.kind == STDERR and not row.findings:
            text = visible(row.title)
            shown = text if self._style.whole else shortened(text, _LONGEST_STDERR)
            self._stderr.append(f"{moment(row.t)}  {shown}")
            if len(self._stderr) >= 200:
                self._flush_stderr()
            return
        self._flush_stderr()
        line = _row_line(row, self._mark, self._among)
        if row.envelope is not None and self._style == FOLDED:
            line += f" · `_meta` as {_link(row.envelope, self._mark)}"
        self._write(line)
        if row.message is not None:
            laid_out = list(payload_lines(row.message, self._style, WIDTH, how="", has_envelope=row.envelope is None))
            noted = any(piece[0] == PAYLOAD_NOTE for line in laid_out for piece in line)
            lines = [_plain(line) for line in laid_out]
            if lines:
                self._write("")
                self._block(lines, "text" if row.kind == "invalid" or noted else "json")
        if row.body is not None and (laid_out := list(body_lines(row.body, self._style, WIDTH, how=""))):
            self._write("")
            self._block([_plain(line) for line in laid_out], "text")
        for finding in row.findings:
            self._write("")
            self._write(_finding_line(finding))
        self._write("")

    def end(self, text: str) -> None:
        """Write how the recording ends."""
        self._flush_stderr()
        self._write(f"**{markdown_text(text)}**")
        self._write("")

    def finish(self) -> None:
        """Write what was held back."""
        self._flush_stderr()

    def _flush_stderr(self) -> None:
        if self._stderr:
            self._write(f"**stderr** of the server{f' {markdown_code(self._among)}' if self._among else ''}:")
            self._write("")
            self._block(self._stderr, "text")
            self._write("")
            self._stderr = []

    def _block(self, lines: list[str], language: str) -> None:
        for line in markdown_fence(lines, language):
            self._write(line)

    def _write(self, line: str) -> None:
        self._kept.write(_encoded(line))


def _opening(page: MarkdownPage, summary: Summary) -> Iterable[str]:
    yield f"# MCP session{f' with {markdown_code(page.label)}' if page.label else ''}"
    yield ""
    yield from entry_lines(page.entries)
    yield ""
    yield "## Findings"
    yield ""
    yield from fault_lines(summary)
    yield ""
    yield "## Messages"
    yield ""


def entry_lines(entries: Iterable[Entry]) -> Iterable[str]:
    """The head as a list."""
    for entry in entries:
        value = entry.value if entry.lines is None else " ".join(clipped(entry.value, WIDTH, entry.lines))
        parts = (markdown_code(value) if value else "", markdown_text(entry.remark))
        yield f"- **{entry.name}:** {' · '.join(part for part in parts if part) or '–'}"


def fault_lines(summary: Summary, mark: str = "") -> Iterable[str]:
    """The findings by code as a list, worst first."""
    faults = summary.worst_first()
    if not faults:
        yield "None."
    else:
        yield ", ".join(count(number, severity) for severity, number in summary.severities().items()) + ":"
        yield ""
    for fault in faults:
        yield from _fault(fault, mark)


def _fault(fault: Fault, mark: str) -> Iterable[str]:
    first = fault.first
    check = REGISTRY.get(first.code)
    times = f" ×{fault.count:,}" if fault.count > 1 else ""
    where = places(fault, lambda n: _link(n, mark))
    summary = f". {markdown_text(check.summary.replace('``', ''))}" if check is not None and check.summary else ""
    said = f": {markdown_code(first.text)}" if first.text else ""
    head = f"**{first.severity} {first.code}** {markdown_code(first.name)}{times}, by {blamed(first.blame)}"
    yield f"- {head}, {where}{said}{and_more(fault)}{summary}"


def _ending(summary: Summary) -> Iterable[str]:
    yield "## Summary"
    yield ""
    yield from summary_lines(summary)
    yield ""
    yield WRITTEN_BY


def summary_lines(summary: Summary) -> Iterable[str]:
    """Counts, latencies and requests without an answer, in a fenced block."""
    lines = [_plain(line) for line in closing_lines(summary, WIDTH)]
    end = next((index for index, line in enumerate(lines) if line.startswith(("Findings", "No findings"))), len(lines))
    body = lines[2:end]
    while body and not body[-1]:
        body.pop()
    yield from markdown_fence(body, "text")


def _row_line(row: Row, mark: str, among: str) -> str:
    """One paragraph for a row, beginning with the anchor that findings link to."""
    # Numbers are links, also because a tracker would take a bare #12 for one of its issues.
    anchor = f"{mark}n{row.n}"
    number = f'<a id="{anchor}" href="#{anchor}">{mark}#{row.n}</a>'
    parts = [number if row.kind != REPORT else f"about {_link(row.n, mark)}"]
    if among:
        parts.append(markdown_code(among))
    parts.append(moment(row.t))
    if row.direction in _WHO and row.kind != UNANSWERED:
        parts.append(_WHO[row.direction])
    if row.kind == HTTP:
        parts.append("HTTP")
    if row.conversation is not None:
        parts.append(f"conversation {row.conversation}")
    if row.server:
        parts.append(f"at {markdown_code(shortened(row.server, 80))}")
    if row.kind == EDIT:
        parts.append("edited")
    parts.append(_http_title(row, mark) if row.kind == HTTP else _title(row))
    parts.extend(_NUMBER.sub(rf"[{mark}#\1](#{mark}n\1)", markdown_text(word)) for word in row.words)
    if row.remark:
        parts.append(markdown_code(shortened(row.remark, 200)))
    if row.event_id is not None:
        parts.append(f"{'after ' * row.is_after}event {markdown_code(shortened(row.event_id, 80))}")
    if row.connection is not None:
        parts.append(f"conn {row.connection}")
    if row.id is not None:
        parts.append(f"id {markdown_code(shortened(row.id, 80))}")
    if row.size is not None:
        parts.append(size(row.size))
    if row.latency_us is not None:
        parts.append(f"{'waited ' if row.kind == UNANSWERED else ''}{duration(row.latency_us)}")
    return " · ".join(part for part in parts if part)


def _http_title(row: Row, mark: str) -> str:
    """Status, method and target, or what stands in their place."""
    status = f"**{row.status}**" if row.odd or row.loud else row.status
    target = "" if row.target is None else shortened(row.target, 200)
    if row.is_worded:
        title = _NUMBER.sub(rf"[{mark}#\1](#{mark}n\1)", markdown_text(row.title))
        return " ".join(filter(None, (status, title, markdown_code(target) if target else "")))
    sent = f"{shortened(row.title, 80)} {target}".strip()
    return " ".join(filter(None, (status, markdown_code(sent) if sent else "")))


def _link(n: int, mark: str = "") -> str:
    return f"[{mark}#{n}](#{mark}n{n})"


def _title(row: Row) -> str:
    if row.kind == BLANK:
        return "blank line"
    if row.kind in (CLOSE, NOTE):
        return f"**{markdown_text(row.title)}**" if row.loud else markdown_text(row.title)
    if row.kind in ("invalid", "batch") and row.message is not None and row.message.link is None:
        return f"**{markdown_text(row.title)}**"
    title = f"**{markdown_code(row.title)}**" if row.title else ""
    target = markdown_code(shortened(row.target, 200)) if row.target is not None else ""
    return f"{title} {target}".strip()


def _finding_line(finding: Finding) -> str:
    fix = what_to_do(finding)
    said = f" {markdown_code(finding.text)}" if finding.text else ""
    todo = f"\\\n> Fix: {markdown_text(fix)}" if fix else ""
    head = f"**{finding.severity} {finding.code}** {markdown_code(finding.name)}, by {blamed(finding.blame)}"
    return f"> {head}:{said}{todo}"


def _plain(line: Line) -> str:
    return "".join(text for _, text in line).rstrip()


def _encoded(line: str) -> bytes:
    return (line + "\n").encode(errors="backslashreplace")
