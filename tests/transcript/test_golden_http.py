"""The transcripts of three small sessions over HTTP, written by hand from the specification and not by the code."""

from pathlib import Path

import pytest

from mcpsniff import __version__
from mcpsniff.capture.records import Record
from mcpsniff.transcript.payload import FOLDED, NONE, Style
from tests.dialogue import check_dialogue
from tests.transcript.rendering import markdown, text

FOLDER = Path(__file__).resolve().parent / "golden_http"


def golden(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def records(name: str) -> list[Record]:
    return check_dialogue(golden(f"{name}.dialogue")).records


def header(path: str) -> dict[str, str]:
    return {
        "transport": "http",
        "listen": f"http://127.0.0.1:9000{path}",
        "upstream": f"http://127.0.0.1:8000{path}",
    }


@pytest.mark.parametrize(
    ("name", "path", "style"), [("sse", "/sse", FOLDED), ("streamable", "/mcp", FOLDED), ("modern", "/mcp", NONE)]
)
def test_text(name: str, path: str, style: Style) -> None:
    assert text(records(name), style=style, **header(path)) == golden(f"{name}.txt")


def test_markdown() -> None:
    assert markdown(records("sse"), **header("/sse")) == golden("sse.md").replace("VERSION", __version__)
