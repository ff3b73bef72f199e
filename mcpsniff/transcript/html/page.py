"""The whole document. What comes first in it is known last, so rows and bars are kept in temporary files meanwhile."""

import tempfile
from collections.abc import Iterable
from typing import IO, BinaryIO, Final

from mcpsniff import __version__
from mcpsniff.transcript.head import Entry
from mcpsniff.transcript.html import assets
from mcpsniff.transcript.html.markup import content
from mcpsniff.transcript.html.rows import bars, row_markup
from mcpsniff.transcript.html.summary import findings_section, head_section, summary_section
from mcpsniff.transcript.payload import FOLDED, Style
from mcpsniff.transcript.rows import Row
from mcpsniff.transcript.session import Session, write
from mcpsniff.transcript.summary import Summary
from mcpsniff.transcript.units import count

ROWS_IN_A_LIST: Final = 50
"""A browser lays out a list of rows only when it comes into view, so a long page costs no more than a short one."""
FEW_ROWS: Final = 300
"""Up to so many rows a printed page shows all payloads."""
_IN_MEMORY: Final = 4 * 1024 * 1024
_BLOCK: Final = 1 << 16


def write_html(
    session: Session, stream: BinaryIO, style: Style = FOLDED, *, now_us: int | None = None, running: bool = False
) -> None:
    """Write the page to ``stream``; ``now_us`` and ``running`` as in `mcpsniff.transcript.session.write`.

    Memory does not grow with the capture. Raises OSError as the stream or a temporary file does.
    """
    with (
        tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY) as rows,
        tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY) as bars,
    ):
        page = HtmlPage(rows, bars, style)
        summary = write(session, page, now_us=now_us, running=running)
        page.finish()
        stream.writelines(map(_encoded, _before(page, summary)))
        _copy(rows, stream)
        stream.write(_encoded(_BETWEEN.format(end=f"<p class=end>{content(page.ending)}</p>" if page.ending else "")))
        _copy(bars, stream)
        stream.write(_encoded(_AFTER.format(version=content(__version__), script=assets.script())))


class HtmlPage:
    """Takes the parts of a transcript; writes rows and bars to files and remembers the rest."""

    def __init__(self, rows: IO[bytes], bars: IO[bytes], style: Style) -> None:
        self._rows, self._bars = rows, bars
        self._style = style
        self.label = ""
        self.entries: list[Entry] = []
        self.ending = ""
        self.count = self._bar_count = 0

    def head(self, label: str, entries: Iterable[Entry]) -> None:
        """Remember the head."""
        self.label, self.entries = label, list(entries)

    def row(self, row: Row) -> None:
        """Write a row, and the bar of the exchange that it ends."""
        if self.count % ROWS_IN_A_LIST == 0:
            self._rows.write(b"</ol>\n<ol role=list>\n" if self.count else b"<ol role=list>\n")
        self.count += 1
        self._rows.write(_encoded(row_markup(row, self._style)))
        for ended in bars(row):
            self._bars.write((",\n" if self._bar_count else "").encode() + f"[{','.join(map(str, ended))}]".encode())
            self._bar_count += 1

    def end(self, text: str) -> None:
        """Remember how the recording ends."""
        self.ending = text

    def finish(self) -> None:
        """Close the last list."""
        if self.count:
            self._rows.write(b"</ol>\n")


_START: Final = """<!DOCTYPE html>
<html lang=en>
<head>
<meta charset=utf-8>
<meta http-equiv=Content-Security-Policy content="{policy}">
<meta name=viewport content="width=device-width, initial-scale=1">
<meta name=referrer content=no-referrer>
<meta name=generator content=mcpsniff>
<title>{title}</title>
<style>{style}</style>
</head>
"""

_TIMELINE: Final = """<section id=timeline aria-labelledby=h-timeline hidden>
<h2 id=h-timeline>Timeline</h2>
<div id=zoom role=group aria-label="Zoom of the timeline">
<button type=button aria-label="Zoom in">+</button><button type=button aria-label="Zoom out">−</button>
<button type=button aria-label="Earlier">←</button><button type=button aria-label="Later">→</button>
<button type=button>all</button></div>
<canvas tabindex=0 role=img aria-label="Every request as a bar from its sending to its answer"
aria-describedby=told></canvas>
<p id=told role=status>Point at a bar, or move with the arrow keys; Enter goes to the message. Drag to zoom.</p>
<p id=legend aria-hidden=true><span><i class=client></i>the client asks</span><span><i class=server></i>the server
asks</span><span><i class=failed></i>failed</span><span><i class=cancelled></i>cancelled</span><span><i
class=unanswered></i>no answer</span><span><i class=quiet></i>stderr</span><span hidden><i
class=web></i>HTTP, event streams</span><span><i class=silence></i>silence, drawn
short</span></p>
</section>
"""

_MESSAGES: Final = """<section id=messages aria-labelledby=h-messages>
<h2 id=h-messages>Messages</h2>
<div id=bar role=search hidden>
<label for=filter>Filter</label>
<input id=filter type=search autocomplete=off autocapitalize=off spellcheck=false aria-describedby="keys shown"
placeholder="words, method:tools/call, state:errored">
<output id=shown for=filter></output>
<button type=button id=theme>dark</button>
</div>
<p id=keys hidden><span><kbd>/</kbd> filter <kbd>n</kbd> <kbd>p</kbd> next, previous <kbd>f</kbd> next finding
<kbd>x</kbd> its answer or request <kbd>Enter</kbd> open <kbd>Esc</kbd> back. </span>The filter knows words and
<code>method: tool: state: severity: code: dir: kind: id: status: text:</code>, with <code>-</code> before one for
“not”; <code>mcpsniff show --filter</code> knows more, such as <code>conversation: server: auth:</code>.</p>
<noscript><p class=hint>Scripts are off. Every message can be read, and opens with a click; the timeline, the filter and
the layout of payloads need scripts. This page holds its own script and asks nothing of any network.</p></noscript>
"""

_BETWEEN: Final = """{end}
<p id=none hidden>Nothing matches. <kbd>Esc</kbd> in the filter shows everything again.</p>
</section>
</main>
<script type=application/json id=bars>["""

_AFTER: Final = """]</script>
<footer><p>Written by mcpsniff {version}. The numbers of the messages are those of the events in its JSON output. What
was captured may hold secrets: read it before you pass it on.</p></footer>
<script>{script}</script>
</body>
</html>
"""


def _before(page: HtmlPage, summary: Summary) -> Iterable[str]:
    """Everything above the rows."""
    title = f"{page.label}: MCP session" if page.label else "MCP session"
    yield _START.format(policy=assets.policy(), title=content(title), style=assets.style())
    yield f"<body class={'few' if page.count <= FEW_ROWS else 'many'}>\n"
    yield from head_section(page.label, page.entries)
    yield "<main>\n"
    yield from findings_section(summary)
    yield from summary_section(summary)
    yield _TIMELINE
    yield _MESSAGES
    if not page.count:
        yield f"<p>{count(0, 'message')}.</p>\n"


def _copy(kept: IO[bytes], stream: BinaryIO) -> None:
    kept.seek(0)
    while block := kept.read(_BLOCK):
        stream.write(block)


def _encoded(text: str) -> bytes:
    return text.encode(errors="backslashreplace")
