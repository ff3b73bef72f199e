"""The registry: codes and names are unique, every check documents itself, none can harm another."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from mcpsniff.capture.parser import Damage
from mcpsniff.checks import (
    ERROR,
    FEATURES,
    FRAMING,
    HTTP,
    INFO,
    JSONRPC,
    LIFECYCLE,
    NOTE,
    ORDERING,
    RECORDER,
    REGISTRY,
    SEVERITIES,
    TIMING,
    WARNING,
    Check,
    Finding,
    Runner,
    check,
    load,
)
from mcpsniff.checks.recorder import damage_finding
from mcpsniff.checks.table import table_markdown
from mcpsniff.protocol.conversation import Conversation
from mcpsniff.protocol.events import Close, Note
from mcpsniff.protocol.http import Http, NamedEvent
from mcpsniff.protocol.message import Message
from mcpsniff.protocol.revisions import REVISIONS
from mcpsniff.wire.frames import Frame
from tests.dialogue import Played, blocks, play

CHECKS = sorted(load().values(), key=lambda check: check.code)
GROUPS = {
    "1": FRAMING,
    "2": JSONRPC,
    "3": LIFECYCLE,
    "4": ORDERING,
    "5": HTTP,
    "6": FEATURES,
    "8": TIMING,
    "9": RECORDER,
}
FAULTY = {
    name: blocks((Path(__file__).parent / f"faulty_{name}session.md").read_text(encoding="utf-8"))[0]
    for name in ("", "http_")
}
every_faulty_session = pytest.mark.parametrize("dialogue", FAULTY.values(), ids=["pipes", "HTTP"])


@pytest.fixture
def registry() -> Iterator[dict[str, Check]]:
    before = dict(REGISTRY)
    yield REGISTRY
    REGISTRY.clear()
    REGISTRY.update(before)


def test_these_checks_are_there() -> None:
    numbers = {check.code for check in CHECKS}
    assert numbers == {
        *(f"MCP{n}" for n in range(101, 120)),
        *(f"MCP{n}" for n in range(201, 218)),
        *(f"MCP{n}" for n in range(401, 413)),
        *("MCP301", "MCP304", "MCP305", "MCP421", "MCP422", "MCP430", "MCP603", "MCP801"),
        *(f"MCP{n}" for n in range(501, 561)),
        *(f"MCP{n}" for n in range(901, 908)),
    }
    assert len({check.name for check in CHECKS}) == len(CHECKS)


@pytest.mark.parametrize("one", CHECKS, ids=lambda one: one.code)
def test_a_check_documents_itself(one: Check) -> None:
    paragraphs = one.doc.split("\n\n")

    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", one.name)
    assert one.group == GROUPS[one.code[3]]
    assert one.severity in SEVERITIES
    assert one.spec
    assert {one.since, one.until} <= {None, *REVISIONS}
    assert len(paragraphs) == 3
    assert one.summary.endswith(".")
    assert len(one.summary) <= 130
    assert len(paragraphs[1]) > 60
    assert one.fix
    assert one.function.__doc__ is not None


@pytest.mark.parametrize(("code", "name"), [("MCP101", "new-name"), ("MCP999", "stdio-not-json")])
def test_a_code_or_a_name_is_taken_only_once(registry: dict[str, Check], code: str, name: str) -> None:
    before = dict(registry)
    with pytest.raises(ValueError, match="registered already"):
        check(code, name, on=Message, severity=ERROR, group=FRAMING)(lambda *_: None)
    assert registry == before


def findings_without(played: Played, *codes: str) -> list[Finding]:
    """The findings but those of ``codes``, without their place among others."""
    return [replace(one, k=0) for one in played.findings if one.code not in codes]


def every_item(code: str, item_type: type, answer: Callable[..., Any]) -> Check:
    return Check(code, f"test-{code.lower()}", item_type, NOTE, FRAMING, answer, in_part=True)


@every_faulty_session
def test_adding_a_check_changes_no_other_checks_findings(dialogue: str) -> None:
    without = play(dialogue, CHECKS)
    for item_type in (Frame, Message, Close, Note, Http, NamedEvent):
        added = every_item("MCP999", item_type, lambda *_: ["one", "two"])
        for checks in ([added, *CHECKS], [*CHECKS, added]):
            played = play(dialogue, checks)
            if item_type in (Frame, Message) or "@http" in dialogue:
                assert any(one.code == "MCP999" for one in played.findings) is (item_type is not Note)
            assert findings_without(played, "MCP999") == findings_without(without)


class Sabotage:
    """Checks of which the one that is called as number ``fails_at`` of all calls raises."""

    def __init__(self) -> None:
        self.calls = 0
        self.fails_at = 0
        self.checks = [replace(one, function=partial(self._call, one)) for one in CHECKS]

    def _call(self, one: Check, item: Any, conversation: Conversation) -> Any:
        self.calls += 1
        if self.calls == self.fails_at:
            raise RuntimeError(one.code)
        return one.function(item, conversation)

    def play(self, dialogue: str, fails_at: int) -> Played:
        self.calls, self.fails_at = 0, fails_at
        return play(dialogue, self.checks)


@every_faulty_session
def test_a_check_that_fails_at_any_call_is_off_and_told_once_and_the_others_do_not_notice(dialogue: str) -> None:
    sabotage = Sabotage()
    without = sabotage.play(dialogue, fails_at=0)
    total = sabotage.calls
    assert total > 20
    for number in range(1, total + 1):
        played = sabotage.play(dialogue, fails_at=number)
        (told,) = [one for one in played.findings if one.code == "MCP901"]
        off = told.text.split()[1]
        kept = [one for one in played.findings if one.code == off]
        whole = [one for one in without.findings if one.code == off]

        assert told.blame == "mcpsniff"
        assert told.text.endswith(f"RuntimeError: {off}")
        assert findings_without(played, "MCP901", off) == findings_without(without, off)
        assert kept == whole[: len(kept)]


@every_faulty_session
def test_at_and_k_identify_a_finding(dialogue: str) -> None:
    slow = f"{dialogue}\nC> EOF\n+ 90s\n"
    places = [(one.at, one.k) for one in play(slow).findings]
    assert len(set(places)) == len(places)


def test_a_finding_about_an_exchange_names_its_request() -> None:
    played = play('@open 2025-11-25\nC> {"jsonrpc":"2.0","id":1,"method":"x"}\n+ 61s\nS> EXIT 0')
    request = next(event.n for event in played.events if isinstance(event, Message) and event.method == "x")
    named = {one.code: one.message for one in played.findings}
    assert named == {"MCP410": request, "MCP119": None, "MCP409": request}


def test_revisions_gate_a_check() -> None:
    def codes(revision: str | None, **gate: str) -> list[str]:
        added = Check("MCP999", "test", Message, NOTE, FRAMING, lambda *_: "hit", **gate)  # type: ignore[arg-type]
        runner = Runner([added])
        played = play('S> {"jsonrpc":"2.0","method":"x"}', [])
        message = next(event for event in played.events if isinstance(event, Message))
        message.revision = revision
        return [one.code for one in runner.message(message, Conversation(1))]

    assert codes("2025-06-18", since="2025-06-18") == ["MCP999"]
    assert codes("2025-03-26", since="2025-06-18") == []
    assert codes("2025-11-25", until="2025-11-25") == ["MCP999"]
    assert codes("2026-07-28", until="2025-11-25") == []
    assert codes(None, until="2025-11-25") == []
    assert codes("2099-01-01", since="2025-06-18") == []
    assert codes(None) == ["MCP999"]


def test_damage_becomes_a_finding() -> None:
    damage = Damage("a.mcpcap", 9, 812, "not JSON")
    finding = damage_finding(4, 1, 500, str(damage))

    assert (finding.code, finding.severity, finding.blame, finding.at, finding.k) == (
        "MCP903",
        WARNING,
        "mcpsniff",
        4,
        1,
    )
    (judged,) = Runner().item(damage, Conversation(1), 4, 500)
    assert replace(judged, k=1) == finding


def test_the_table_has_a_row_for_every_check_under_its_group() -> None:
    table = table_markdown()
    rows = [line for line in table.splitlines() if line.startswith("| MCP")]

    assert [row.split(" | ")[0].strip("| ") for row in rows] == [one.code for one in CHECKS]
    assert re.findall(r"^### (.*)$", table, re.MULTILINE) == list(GROUPS.values())
    assert f"| MCP407 | `response-uncorrelated` | {INFO} | all |" in table
    assert "| MCP402 | `id-reused` | error | to 2025-11-25 |" in table
