"""What is wrong with an expression is said with its place and with what may have been meant."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from mcpsniff.transcript.filter import FilterError, compile_filter
from mcpsniff.transcript.safe import visible

WRONG = [
    # the expression, the column, a part of the sentence, the suggestion
    ("", 1, "empty", "tool:*"),
    ("   ", 1, "empty", "tool:*"),
    ("tol:echo", 1, "there is no field tol", "tool"),
    ("ping methd:x", 6, "there is no field methd", "method"),
    ("direction:c2s", 1, "there is no field direction", "dir"),
    ("type:error", 1, "there is no field type", "kind"),
    ("status:open", 8, "open is what became of a request, not a status of HTTP", "state:open"),
    ("status:4x", 8, "4x is no whole number", ""),
    ("stream:sse", 8, "sse is none of post, get, resumed, legacy", "legacy"),
    ("path:/mcp", 1, "there is no field path", "http"),
    ("level:error", 1, "there is no field level", "severity"),
    ("stderr:boom", 1, "there is no field stderr", "kind:stderr"),
    ("error:7", 1, "there is no field error", "kind:error"),
    ("http://host/path", 1, "a text with a colon in it belongs in quotes", '"http://host/path"'),
    (":x", 1, "a field belongs before the colon", "text:…"),
    ("tool:", 6, "needs a value directly after the colon", ""),
    ("tool: echo", 6, "needs a value directly after the colon", ""),
    ("(tool:)", 7, "needs a value directly after the colon", ""),
    ("kind:eror", 6, "eror is none of request,", "error"),
    ("kind:noise", 6, "noise is none of", "invalid"),
    ("kind:result", 6, "result is none of", "response"),
    ("a or kind:stder", 11, "stder is none of", "stderr"),
    ("state:opne", 7, "opne is none of open,", "open"),
    ("state:failed", 7, "failed is none of", "errored"),
    ("state:canceled", 7, "canceled is none of", "cancelled"),
    ("dir:c2", 5, "c2 is none of c2s, s2c", "c2s"),
    ("dir:server", 5, "server is none of", "s2c"),
    ("severity:warn", 10, "warn is none of info, note, warning, error", "warning"),
    ("severity:>=warnin", 12, "warnin is none of", "warning"),
    ("severity:note..eror", 16, "eror is none of", "error"),
    ("severity:error..note", 10, "the range begins behind its end", "note..error"),
    ("blame:sever", 7, "sever is none of client, server", "server"),
    ("has:eror", 5, "eror is none of", "error"),
    ('kind:"eror"', 7, "eror is none of", "error"),
    ("flaw:notjson", 6, "there is no flaw notjson", "not-json"),
    ("code:stdio-not-jsn", 6, "no check has the code or the name", "stdio-not-json"),
    ("code:409", 6, "no check has the code or the name", "MCP409"),
    ("latency:500", 12, "a unit belongs here", "500ms"),
    ("latency:>500", 13, "a unit belongs here", "500ms"),
    ("latency:500ms", 9, "a comparison or a range belongs here", ">500ms"),
    ("latency:>500mss", 13, "there is no unit mss", "ms"),
    ("latency:>fast", 10, "fast does not begin with a number", ""),
    ("latency:>", 10, "something is missing here, such as 500ms", ""),
    ("latency:1s..", 13, "something is missing here", ""),
    ("latency:..1s", 9, "something is missing here", ""),
    ("latency:2s..1s", 9, "the range begins behind its end", "1s..2s"),
    ("latency:>1.s", 10, "does not begin with a number", ""),
    ("latency:>-1s", 10, "does not begin with a number", ""),
    ("size:>64q", 9, "there is no unit q", ""),
    ("size:>1e3", 8, "there is no unit e3", ""),
    ("t:10s", 3, "a comparison or a range belongs here", ">10s"),
    ("t:>1m20x", 8, "there is no unit x", ""),
    ("t:>1m20", 4, "does not begin with a number", ""),
    ("t:>1:2:3:4", 4, "is no moment", ""),
    ("t:>25:61Z", 4, "is no time of day", ""),
    ("t:>2026-11-29T10:00", 4, "does not say in which time zone", "2026-11-29T10:00Z"),
    ("n:seven", 3, "seven is no whole number", ""),
    ("n:1..x", 6, "x is no whole number", ""),
    ("id:12x", 4, "a number or a string in quotes", 'id:"12x"'),
    ("id:-inf", 4, "a number or a string in quotes", 'id:"-inf"'),
    ('text:""', 7, "an empty text is in everything", ""),
    ('tool:"echo', 6, "this quote is never closed", ""),
    ('"abc', 1, "this quote is never closed", ""),
    (r'"a\q"', 3, "an unknown escape", ""),
    (r'"\u12"', 2, "an unknown escape", ""),
    ('"\\', 2, "an unknown escape", ""),
    ('"a"b', 4, "a space belongs after a closing quote", ""),
    ('a"b"', 2, "a quote directly after a", ""),
    ('tool:a"b', 7, "a quote directly after a", ""),
    ("foo(bar)", 4, "a bracket directly after foo", ""),
    ("tool:a(b)", 7, "a bracket directly after a", ""),
    ("(a", 1, "this bracket is never closed", ""),
    ("a (b (c)", 3, "this bracket is never closed", ""),
    ("(", 1, "this bracket is never closed", ""),
    ("a)", 2, "this bracket closes nothing", ""),
    (")", 1, "this bracket closes nothing", ""),
    ("()", 2, "nothing stands in these brackets", ""),
    ("a or", 3, 'nothing to match stands after "or"', ""),
    ("a or or b", 3, 'nothing to match stands after "or"', ""),
    ("or a", 1, 'nothing stands before "or"', ""),
    ("a and", 3, 'nothing to match stands after "and"', ""),
    ("not", 1, 'nothing to match stands after "not"', ""),
    ("(not) a", 2, 'nothing to match stands after "not"', ""),
    ("tool：echo", 5, "a full-width colon", "tool:echo"),
    ("“no such city”", 1, "quotes must be straight", ""),
    ("text:“no such city”", 6, "quotes must be straight", ""),
    ("北京 stat:open", 4, "there is no field stat", "state"),
    ("(" * 60 + "a" + ")" * 60, 51, "brackets stand more than 50 deep", ""),
    ("a " * 501, 1001, "more than 500 terms", ""),
    ("a" * 10_001, 10_001, "more than 10,000 characters", ""),
]


@pytest.mark.parametrize(("expression", "column", "sentence", "suggestion"), WRONG, ids=lambda value: str(value)[:30])
def test_an_error(expression: str, column: int, sentence: str, suggestion: str) -> None:
    with pytest.raises(FilterError) as raised:
        compile_filter(expression)
    error = raised.value
    assert (error.column, error.suggestion, error.exit_status) == (column, suggestion, 2)
    first, shown, caret = error.lines
    assert first.startswith(f"filter, column {column}: ")
    assert sentence in first
    assert first.endswith(f"; did you mean {suggestion}?") is bool(suggestion)
    assert str(error) == "\n".join(error.lines)
    assert caret.strip() == "^"
    assert cell_len(shown) <= 74


@pytest.mark.parametrize(
    ("expression", "shown", "caret"),
    [
        ("tool:echo kind:eror", "  tool:echo kind:eror", "                 ^"),
        ("北京 kind:eror", "  北京 kind:eror", "            ^"),
        ("é kind:eror", "  é kind:eror", "         ^"),
        ("\t kind:eror", "  \\t kind:eror", "          ^"),
        ("\x1b[2J kind:eror", "  \\x1b[2J kind:eror", "               ^"),
    ],
)
def test_the_caret_stands_below_the_place(expression: str, shown: str, caret: str) -> None:
    with pytest.raises(FilterError) as raised:
        compile_filter(expression)
    assert raised.value.lines[1:] == (shown, caret)


def test_of_a_long_expression_the_part_around_the_place_is_shown() -> None:
    with pytest.raises(FilterError) as raised:
        compile_filter("北京 " * 100 + "kind:eror " + "b " * 100)
    _, shown, caret = raised.value.lines
    at = len(caret) - 1
    assert raised.value.column == 306
    assert shown.startswith("  …")
    assert shown.endswith("…")
    cells = "".join(character + "\0" * (cell_len(character) - 1) for character in shown)
    assert cells[at:].startswith("eror")


def failure(expression: str) -> FilterError | None:
    try:
        compile_filter(expression, started="2026-11-29T10:00:00.000000Z")
    except FilterError as error:
        return error
    return None


@given(st.text(st.sampled_from("ab:()\"\\ '*.<>=1s～：“\n\x1b北not r")) | st.text())
def test_any_text_is_a_filter_or_an_error_with_a_place(expression: str) -> None:
    error = failure(expression)
    if error is not None:
        assert 1 <= error.column <= len(expression) + 1
        assert [visible(line) for line in error.lines] == list(error.lines)


FIELDS = st.sampled_from(["id", "t", "n", "size", "latency", "severity", "code", "flaw", "kind", "text", "method"])


@given(FIELDS, st.text(st.characters(exclude_characters='()"')) | st.from_regex(r"[<>]?=?[-0-9.:eTZ+]{1,12}[smkg]?"))
def test_any_value_is_read_or_refused(field: str, value: str) -> None:
    error = failure(f"{field}:{value}")
    assert error is None or 1 <= error.column <= len(value) + len(field) + 2


@pytest.mark.parametrize(
    "hostile",
    [
        "not " * 2000 + "a",
        "(" * 49 + "a" + ")" * 49,
        "not (" * 49 + "a" + ")" * 49,
        "a or " * 499 + "b",
        "tool:" + "*a" * 4000,
        "id:" + "9" * 900,
        "text:" + "x" * 9000,
    ],
    ids=lambda text: text[:8],
)
def test_large_expressions_are_read(hostile: str) -> None:
    from mcpsniff.transcript.filter.parser import parse

    assert parse(hostile)
    assert compile_filter(hostile).expression == hostile
