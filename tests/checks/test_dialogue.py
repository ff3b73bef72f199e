"""The dialogue tool itself: what it reads, what it plays, and that it cannot agree with everything."""

import pytest

from mcpsniff.protocol.message import Message
from mcpsniff.wire.frames import Frame
from tests.dialogue import DialogueError, blocks, check_dialogue, play

PING = '{"jsonrpc":"2.0","id":1,"method":"ping"}'
UNASKED = '{"jsonrpc":"2.0","id":7,"result":{}}'


@pytest.mark.parametrize(
    "margin",
    ["⟵ MCP403", "⟵ MCP403:error", "⟵   MCP403:error:server  "],
)
def test_a_finding_that_is_expected_is_no_failure(margin: str) -> None:
    check_dialogue(f"@open 2025-11-25\nS> {UNASKED}   {margin}")


@pytest.mark.parametrize(
    "dialogue",
    [
        f"@open 2025-11-25\nS> {UNASKED}",
        f"@open 2025-11-25\nS> {UNASKED}  ⟵ MCP404",
        f"@open 2025-11-25\nS> {UNASKED}  ⟵ MCP403 MCP403",
        f"@open 2025-11-25\nS> {UNASKED}  ⟵ MCP403:warning",
        f"@open 2025-11-25\nS> {UNASKED}  ⟵ MCP403:error:client",
        f"@open 2025-11-25  ⟵ MCP403\nS> {UNASKED}",
        f"@open 2025-11-25\nC> {PING}  ⟵ MCP403\nS> {UNASKED}",
    ],
)
def test_a_finding_too_few_too_many_or_elsewhere_is_a_failure(dialogue: str) -> None:
    with pytest.raises(AssertionError, match="findings differ") as failure:
        check_dialogue(dialogue)
    assert "MCP403: id 7 is answered and was never asked" in str(failure.value)
    assert "! " in str(failure.value)


def test_the_margin_may_name_a_code_twice_in_different_precision() -> None:
    check_dialogue("@open 2025-11-25\nS> [1,2]  ⟵ MCP102 MCP102:error MCP213")


def test_a_margin_sign_inside_a_message_is_no_margin() -> None:
    played = check_dialogue('@open 2025-11-25\nS> {"jsonrpc":"2.0","method":"x","params":{"a":" ⟵ MCP403 "}}')
    assert [event.payload for event in played.events if isinstance(event, Frame)][-1].endswith('⟵ MCP403 "}}'.encode())


def test_bytes_go_out_as_they_are_written() -> None:
    played = play('S| b"a" * 3 + b"\\xff\\n" + b"b"\nS| b"c\\n"  ⟵ MCP101')
    assert [event.payload for event in played.events if isinstance(event, Frame)] == [b"aaa\xff", b"bc"]


def test_time_passes_only_by_lines_and_pauses() -> None:
    played = play(f"C> {PING}\n\n# a comment\n+ 2s\nS> {UNASKED}\n+ 10ms\nS> {UNASKED}")
    assert [event.t for event in played.events if isinstance(event, Message)] == [1000, 2_002_000, 2_013_000]


@pytest.mark.parametrize(
    ("dialogue", "complaint"),
    [
        ("", "empty"),
        ("\n  \n", "empty"),
        ("hello", "line 1 is none of a dialogue"),
        (f"C> {PING}\n+ soon", "line 2 is none of a dialogue"),
        ("S| print(1)", "not a bytes literal"),
        ('S| "text"', "not a bytes literal"),
        ('S| b"', "not a bytes literal"),
        ("@break MCP000\nS> x", "no check 'MCP000'"),
    ],
)
def test_what_cannot_be_read_is_named(dialogue: str, complaint: str) -> None:
    with pytest.raises(DialogueError, match=complaint):
        play(dialogue)


def test_blocks_are_the_code_blocks_marked_as_dialogues() -> None:
    page = "text\n```dialogue\nS> 1\n```\n```json\n{}\n```\n```dialogue\nS> 2\nS> 3\n```\n"
    assert blocks(page) == ["S> 1\n", "S> 2\nS> 3\n"]
