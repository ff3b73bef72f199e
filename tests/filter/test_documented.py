"""Every row of the table in docs/filter.md, against the sample."""

import re
from pathlib import Path

import pytest

from mcpsniff.transcript.filter.terms import EVENT_KINDS, FIELDS
from tests.filter.sample import HEADER, SAMPLE
from tests.filter.selecting import decoded, live, messages, others, same, select

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "filter.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| `(?P<expression>[^|]+)` \| (?P<meaning>.+) \| (?P<messages>\d+)(?: \+ (?P<others>\d+))? \|$")
ROWS = [
    match
    for line in PAGE.split("| expression | meaning | shows |")[1].split("\n\n")[0].splitlines()
    if (match := ROW.match(line))
]


def test_the_table_is_found_and_leaves_no_field_out() -> None:
    table = PAGE.split("| expression | meaning | shows |")[1].split("\n\n")[0]
    assert len(ROWS) == table.count("\n") - 1
    expressions = " ".join(match["expression"] for match in ROWS)
    assert [field for field in FIELDS if f"{field}:" not in expressions] == []
    assert [kind for kind in EVENT_KINDS if f"kind:{kind}" not in expressions] == ["gap", "rewrite", "mask"]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["expression"])
def test_a_row(row: re.Match[str]) -> None:
    expression = row["expression"]
    alone = expression.endswith(" --alone")
    shown = select(SAMPLE, expression.removesuffix(" --alone"), alone=alone, started=HEADER["started"])
    assert len(messages(shown)) == int(row["messages"])
    assert len(others(shown)) == int(row["others"] or 0)


def test_the_sample_is_the_one_that_is_described() -> None:
    events = [event for events in decoded(SAMPLE) for event in events]
    assert f"with {len(messages(events))} messages" in PAGE
    assert same(select(SAMPLE, "not nowhere")) != []
    assert messages(select(SAMPLE, "not nowhere")) == messages(events)
    assert len(others(select(SAMPLE, "not nowhere"))) == len(others(events)) == 6


def test_the_examples_above_the_table_can_be_read() -> None:
    from mcpsniff.transcript.filter import compile_filter

    for expression in re.findall(r"--filter '([^']+)'", PAGE):
        assert compile_filter(expression)
    assert live([], compile_filter("x")) == []
