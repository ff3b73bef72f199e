"""Widths are counted in the cells of a terminal, of which wide characters take two."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpsniff.transcript.layout import cells, clipped, cut, fitted, hanging, hard_wrapped, length, split, wrapped

WIDE = st.text(alphabet="ab 日本語é😀👩\u200d\ufe0f\u0301", max_size=60)


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("", 10, [""]),
        ("one two three", 8, ["one two", "three"]),
        ("日本語日本語", 8, ["日本語日", "本語"]),
        ("a 日本語 b", 8, ["a 日本語", "b"]),
        ("    indented text that goes on", 14, ["    indented", "text that goes", "on"]),
        ("a-b-c-d-e-f-g-h", 8, ["a-b-c-d-", "e-f-g-h"]),
        ("x" * 10, 4, ["xxxx", "xxxx", "xx"]),
        ("two  spaces stay", 20, ["two  spaces stay"]),
    ],
)
def test_words_are_wrapped_by_cells(text: str, width: int, lines: list[str]) -> None:
    assert wrapped(text, width) == lines


@given(WIDE, st.integers(4, 30))
def test_nothing_is_wider_than_asked_and_nothing_is_lost(text: str, width: int) -> None:
    lines = wrapped(text, width)
    assert max(map(cells, lines)) <= width
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
    hard = list(hard_wrapped(text, width))
    assert max(map(cells, hard)) <= width
    assert "".join(hard) == text
    head, tail = split(text, width)
    assert (head + tail, cells(head) <= width) == (text, True)
    assert cells(fitted(text, width)) <= width
    assert length(cut([("a", text), ("b", text)], width)) <= width


@given(WIDE, st.integers(24, 50))
def test_a_long_line_hangs_by_cells(text: str, width: int) -> None:
    laid_out = list(hanging([("indent", "  "), ("name", "日本"), ("string", text)], width))
    assert max(map(length, laid_out)) <= width + 2
    shown = "".join(piece for line in laid_out for role, piece in line if role != "indent")
    assert shown == "日本" + text


def test_a_text_in_a_few_lines_ends_at_a_word() -> None:
    text = "one two three four five six"
    assert clipped(text, 9, 2) == ["one two", "three…"]
    assert clipped(text, 14, 2) == ["one two three", "four five six"]
    assert clipped("x" * 50, 10, 2) == ["x" * 10, "x" * 9 + "…"]


@pytest.mark.parametrize("character", ["x", "語", "\u0301", "\U0001f469"])
def test_no_text_is_too_long(character: str) -> None:
    """A line of a megabyte costs what a thousand lines of a kilobyte cost: nothing is measured again and again."""
    text = character * 300_000
    assert "".join(hard_wrapped(text, 60)) == text
    lines = list(hanging([("plain", text)], 60))
    assert sum(len(piece) for line in lines for role, piece in line if role == "plain") == len(text)
    assert split(text, 60)[0] + split(text, 60)[1] == text
    assert len(clipped(text, 60, 2)) <= 2
