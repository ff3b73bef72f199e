"""Every row of the table in docs/filter.md, against the sample."""

import re
from pathlib import Path

import pytest

from mcpsniff.transcript.filter.terms import EVENT_KINDS, FIELDS
from tests.filter import sample_edited, sample_http
from tests.filter.sample import HEADER, SAMPLE
from tests.filter.selecting import decoded, live, messages, others, same, select, shown_over_http

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "filter.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| `(?P<expression>[^|]+)` \| (?P<meaning>.+) \| (?P<messages>\d+)(?: \+ (?P<others>\d+))? \|$")
TITLES = (
    "| expression | meaning | shows |",
    "| expression | meaning | shows over HTTP |",
    "| expression | meaning | shows when edited |",
)
TABLES = [PAGE.split(f"{title}\n")[1].split("\n\n")[0].splitlines()[1:] for title in TITLES]
ROWS, HTTP_ROWS, EDITED_ROWS = ([match for line in table if (match := ROW.match(line))] for table in TABLES)


def test_the_tables_are_found_and_leave_no_field_out() -> None:
    assert [len(ROWS), len(HTTP_ROWS), len(EDITED_ROWS)] == [len(table) for table in TABLES]
    expressions = " ".join(match["expression"] for match in (*ROWS, *HTTP_ROWS, *EDITED_ROWS))
    assert [field for field in FIELDS if f"{field}:" not in expressions] == []
    assert [kind for kind in EVENT_KINDS if f"kind:{kind}" not in expressions] == ["gap", "mask"]


@pytest.mark.parametrize("row", HTTP_ROWS, ids=lambda row: row["expression"])
def test_a_row_over_http(row: re.Match[str]) -> None:
    alone = row["expression"].endswith(" --alone")
    expression = row["expression"].removesuffix(" --alone")
    shown = shown_over_http(sample_http.SAMPLE, expression, alone=alone)
    assert shown == (int(row["messages"]), int(row["others"] or 0))


@pytest.mark.parametrize("row", EDITED_ROWS, ids=lambda row: row["expression"])
def test_a_row_of_an_edited_session(row: re.Match[str]) -> None:
    alone = row["expression"].endswith(" --alone")
    shown = select(sample_edited.SAMPLE, row["expression"].removesuffix(" --alone"), alone=alone)
    assert len(messages(shown)) == int(row["messages"])
    assert len(others(shown)) == int(row["others"] or 0)


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
    over_http = [event for events in decoded(sample_http.SAMPLE) for event in events]
    assert f"two sessions](../tests/filter/sample_http.py), with {len(messages(over_http))} messages" in PAGE


def test_the_examples_above_the_table_can_be_read() -> None:
    from mcpsniff.transcript.filter import compile_filter

    for expression in re.findall(r"--filter '([^']+)'", PAGE):
        assert compile_filter(expression)
    assert live([], compile_filter("x")) == []
