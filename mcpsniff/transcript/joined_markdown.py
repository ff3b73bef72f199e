"""The transcript of several sessions on one time line, as Markdown: numbers as ``a#12``, by the letter of each."""

import tempfile
from collections.abc import Iterable, Sequence
from typing import BinaryIO, Final

from mcpsniff.transcript.joined import Joined, merged
from mcpsniff.transcript.markdown import WRITTEN_BY, MarkdownPage, entry_lines, fault_lines, summary_lines
from mcpsniff.transcript.payload import FOLDED, Style
from mcpsniff.transcript.safe import markdown_code

_IN_MEMORY: Final = 4 * 1024 * 1024


def write_joined_markdown(joined: Sequence[Joined], stream: BinaryIO, style: Style = FOLDED) -> None:
    """Write the transcript. Raises OSError as the stream or the temporary file does."""
    with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY) as kept:
        pages = {one.letter: MarkdownPage(kept, style, one.letter, one.label) for one in joined}
        for one in joined:
            one.open()
            pages[one.letter].head(one.label, one.session.head())
        latest: MarkdownPage | None = None
        for one, row in merged(joined):
            page = pages[one.letter]
            if latest is not None and page is not latest:
                latest.finish()
            page.row(row)
            latest = page
        for page in pages.values():
            page.finish()
        stream.writelines(_encoded(line) for line in _opening(joined, pages))
        kept.seek(0)
        while block := kept.read(1 << 16):
            stream.write(block)
        stream.writelines(_encoded(line) for line in _ending(joined))


def _opening(joined: Sequence[Joined], pages: dict[str, MarkdownPage]) -> Iterable[str]:
    yield f"# {len(joined)} MCP sessions on one time line"
    for one in joined:
        yield from ("", f"## {one.letter}: {markdown_code(one.label)}", "")
        yield from entry_lines(pages[one.letter].entries)
    for one in joined:
        yield from ("", f"## Findings in {one.letter}", "")
        yield from fault_lines(one.summary, one.letter)
    yield from ("", "## Messages", "")


def _ending(joined: Sequence[Joined]) -> Iterable[str]:
    for one in joined:
        if one.ending:
            yield from (f"**{one.letter}: {one.ending}**", "")
    for one in joined:
        yield from (f"## Summary of {one.letter}", "")
        yield from summary_lines(one.summary)
        yield ""
    yield WRITTEN_BY


def _encoded(line: str) -> bytes:
    return (line + "\n").encode(errors="backslashreplace")
