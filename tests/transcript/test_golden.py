"""The transcripts of one small session, written by hand."""

from mcpsniff import __version__
from tests.transcript.golden import HEADER, MARKDOWN, SESSION, TEXT
from tests.transcript.rendering import markdown, text


def test_text() -> None:
    assert text(SESSION, **HEADER) == TEXT


def test_markdown() -> None:
    assert markdown(SESSION, **HEADER) == MARKDOWN.replace("VERSION", __version__)
