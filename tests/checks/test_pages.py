"""Every check has a page of dialogues, and every dialogue says exactly what the decoder finds."""

import re
from pathlib import Path

import pytest

from mcpsniff.checks import Check, load
from tests.dialogue import Line, blocks, check_dialogue, play

PAGES = sorted((Path(__file__).parent / "pages").glob("*.md"))
DIALOGUES = [
    pytest.param(block, id=f"{page.stem}-{number}")
    for page in PAGES
    for number, block in enumerate(blocks(page.read_text(encoding="utf-8")), 1)
]
CHECKS = sorted(load().values(), key=lambda check: check.code)


def expected_codes(block: str) -> set[str]:
    return set(re.findall(r"MCP\d+", "".join(part.partition("⟵")[2] for part in block.splitlines())))


@pytest.mark.parametrize("block", DIALOGUES)
def test_dialogue(block: str) -> None:
    check_dialogue(block)


def test_every_page_belongs_to_a_check() -> None:
    assert [page.stem for page in PAGES] == [check.code for check in CHECKS]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.code)
def test_every_check_has_a_dialogue_that_fires_and_one_that_stays_silent(check: Check) -> None:
    text = (Path(__file__).parent / "pages" / f"{check.code}.md").read_text(encoding="utf-8")
    fires = [check.code in expected_codes(block) for block in blocks(text)]

    assert text.startswith(f"# {check.code} {check.name}\n")
    assert any(fires)
    assert not all(fires)


@pytest.mark.parametrize("block", DIALOGUES)
def test_what_a_finding_says_is_short_and_safe(block: str) -> None:
    for finding in play(block).findings:
        assert finding.text.isprintable(), finding.text
        assert 10 < len(finding.text) < 300, finding.text
        assert not finding.text.endswith(".")


def test_a_page_that_is_wrong_is_noticed() -> None:
    wrong = Line(1, "S> x", ["MCP101"])
    assert not wrong.is_as_expected()


def test_each_fault_of_a_faulty_session_is_a_finding_of_its_own() -> None:
    text = (Path(__file__).parent / "faulty_session.md").read_text(encoding="utf-8")
    for block in blocks(text):
        played = check_dialogue(block)
    unanswered = [finding.text for finding in played.findings if finding.code == "MCP409"]
    assert [text.partition(" was never answered")[0] for text in unanswered] == [
        "request 4 (y/open)",
        "request 4 (y/open)",
        'request "hung" (y/tools-call-never-answered)',
        "request 15 (x/exit)",
    ]
