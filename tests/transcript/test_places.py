"""Numbers lead somewhere: whatever a transcript names by number has a row, and links have an anchor, in every form."""

import re
from io import BytesIO
from pathlib import Path

import pytest

from mcpsniff.capture.records import Record
from mcpsniff.transcript.html import write_html
from mcpsniff.transcript.payload import NONE
from mcpsniff.transcript.session import Session
from tests.dialogue import blocks, play
from tests.transcript.http_sessions import TROUBLE, records
from tests.transcript.rendering import capture, markdown, text

PAGES = sorted((Path(__file__).parents[1] / "checks" / "pages").glob("*.md"))


def sessions(page: Path) -> list[tuple[list[Record], str]]:
    said = blocks(page.read_text(encoding="utf-8"))
    return [(play(block).records, "http" if block.startswith("@http") else "stdio") for block in said]


def is_all_there(said: list[Record], transport: str) -> None:
    document = markdown(said, style=NONE, transport=transport)
    assert set(re.findall(r"\]\(#(n\d+)\)", document)) <= set(re.findall(r'<a id="(n\d+)"', document))
    stream = BytesIO()
    write_html(Session(capture(said, transport=transport)), stream)
    document = stream.getvalue().decode()
    assert set(re.findall(r"<a href=#(n\d+)", document)) <= set(re.findall(r" id=(n\d+)", document))
    shown = text(said, style=NONE, transport=transport, width=200)
    rows, _, summary = shown.partition("\nSummary\n")
    named = {
        number for places in re.findall(r"  at ((?:#\d+(?:, )?)+)", summary) for number in re.findall(r"#\d+", places)
    }
    assert named <= set(re.findall(r"^ *[\d.:]+ +(#\d+) ", rows, re.MULTILINE)) | set(re.findall(r"about (#\d+)", rows))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_number_of_a_dialogue_leads_somewhere(page: Path) -> None:
    for said, transport in sessions(page):
        is_all_there(said, transport)


def test_every_number_of_a_troubled_session_leads_somewhere() -> None:
    is_all_there(records(TROUBLE), "http")
