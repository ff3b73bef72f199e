"""Nothing captured does anything to a terminal or to a page (cases B137, B140)."""

import json
import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpsniff.capture.records import Record
from mcpsniff.transcript.payload import WHOLE
from mcpsniff.transcript.safe import markdown_code, markdown_fence, visible, visible_json, visible_json_lines
from tests.sessions import OPENS, records
from tests.transcript.rendering import markdown, text


@pytest.mark.parametrize(
    ("hostile", "shown"),
    [
        ("plain text, é, 日本, 😀", "plain text, é, 日本, 😀"),
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("a\tb\nc\rd\0e\x7f\x9b", "a\\tb\\nc\\rd\\x00e\\x7f\\x9b"),
        ("abc\u202edef\u2066", "abc\\u202edef\\u2066"),
        ("zero\u200bwidth\u200d\ufeff\u00ad", "zero\\u200bwidth\\u200d\\ufeff\\xad"),
        ("\u2028\u2029", "\\u2028\\u2029"),
        ("\ud800", "\\ud800"),
        ("\U000e0041\U000e0100", "\\U000e0041\\U000e0100"),
        ("\u3164\u2800", "\\u3164\\u2800"),
        ("\U0001f469\u200d\U0001f469\u200d\U0001f467", "\U0001f469\u200d\U0001f469\u200d\U0001f467"),
        ("\U0001f3f3\ufe0f\u200d\U0001f308", "\U0001f3f3\ufe0f\u200d\U0001f308"),
        ("\U0001f469\U0001f3fd\u200d\U0001f52c", "\U0001f469\U0001f3fd\u200d\U0001f52c"),
        ("\u2600\ufe0f sun", "\u2600\ufe0f sun"),
        ("\U0001f469\u200d", "\U0001f469\\u200d"),
        ("\u200d\U0001f469", "\\u200d\U0001f469"),
        ("\U0001f469\u200d\u200d\U0001f467", "\U0001f469\\u200d\\u200d\U0001f467"),
        ("\U0001f469\u200dx", "\U0001f469\\u200dx"),
        ("x\ufe0f\u200d\U0001f469", "x\\ufe0f\\u200d\U0001f469"),
        ("\u2600\ufe0f\ufe0f\ufe00", "\u2600\ufe0f\\ufe0f\\ufe00"),
        ("a\u3000b\u00a0c", "a\u3000b\u00a0c"),
    ],
)
def test_what_does_not_show_is_spelt(hostile: str, shown: str) -> None:
    assert visible(hostile) == shown


def test_a_picture_of_several_stays_whole_in_json_too() -> None:
    family = '"\U0001f469\u200d\U0001f469\u200d\U0001f467"'
    assert visible_json(family) == family
    assert visible_json('"a\u200db"') == '"a\\u200db"'


def test_in_json_it_is_spelt_as_json_has_it() -> None:
    assert visible_json('"a\x7f\u202e\U000e0041"') == '"a\\u007f\\u202e\\udb40\\udc41"'


@given(st.text(alphabet=st.characters(exclude_categories=())))
def test_only_printable_characters_are_left(hostile: str) -> None:
    for made in (visible(hostile), visible_json(hostile)):
        joined = re.sub("(?<=[^\x20-\x7e])\u200d(?=[^\x20-\x7e])", "", made)
        assert not {unicodedata.category(c) for c in joined} & {"Cc", "Cf", "Cs", "Zl", "Zp"}


@given(st.text())
def test_a_code_span_is_closed_by_its_own_fence_only(hostile: str) -> None:
    span = markdown_code(hostile)
    if span[0] == "`":
        fence = re.match(r"`+", span)[0]  # type: ignore[index]
        assert span.endswith(fence)
        assert fence not in re.findall(r"`+", span[len(fence) : -len(fence)])
    assert "\n" not in span


@given(st.lists(st.text(alphabet="`~a ")))
def test_a_fenced_block_is_closed_by_its_last_line_only(lines: list[str]) -> None:
    fence, *inside, last = markdown_fence(lines)
    assert fence == last
    assert not any(line.lstrip().startswith(fence) for line in inside)


VALUES = st.recursive(st.text() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))


@given(VALUES)
def test_json_for_a_terminal_means_the_same(value: object) -> None:
    line = json.dumps(value, ensure_ascii=False, indent="\t").replace("\n", " ").encode(errors="replace") + b"\n"
    shown = visible_json_lines(line)
    assert json.loads(shown) == json.loads(line)
    assert shown.endswith(b"\n")
    assert not any(unicodedata.category(c) == "Cc" for c in shown.decode() if c not in "\t\n")


NOISE = b"\x1b[31mraw\x1b[0m\x1b[6n\n"
ESCAPED = rb'{"jsonrpc":"2.0","id":1,"result":{"t":"a\u001b]52;c;ZXZpbA==\u0007b\u001b[2Jc"}}' + b"\n"
C1 = '{"jsonrpc":"2.0","method":"notifications/\x9b31m","params":{"\u202e":"\x7f\u2028"}}\n'.encode()
HOSTILE = [
    *records(("s2c", ESCAPED), ("s2c", NOISE), ("c2s", C1), ("err", b"\x1b]0;title\x07 \xff\n"), ("s2c", C1)),
    Record(9000, "comment", None, {"text": "\x1b[2J", "by": "\x1b"}),
    Record(9500, "gap", 1, {"bytes": 1, "why": "\x1b[1m"}),
    Record(9600, "close", 0, {"how": "\x1b[1m", "error": "\x1b[1m"}),
]
HEADER = {"argv": ["a\x1b[1m", "b\nc"], "cwd": "/\x1b", "transport": "\x1b[1m", "label": "l\x1b[1m\u202e"}


@pytest.mark.parametrize("style", [WHOLE, None])
def test_no_control_character_reaches_a_reader(style: object) -> None:
    """Case B137."""
    options = {} if style is None else {"style": WHOLE}
    for shown in (text(HOSTILE, **options, **HEADER), markdown(HOSTILE, **options, **HEADER)):
        bad = {c for c in shown if c != "\n" and unicodedata.category(c) in {"Cc", "Cf", "Cs", "Zl", "Zp"}}
        assert bad == set()
        assert "\\x1b[31mraw" in shown
        assert "\\u001b]52;c;ZXZpbA==\\u0007" in shown


MARKUP = (
    "</script><script>document.title=1</script>",
    "![i](http://x.test/a.png) [l](http://x.test) <http://x.test>",
    "# heading",
    "| a | b |",
    "`code` ``more`` ```",
    "@somebody #1 **bold**",
)


@pytest.mark.parametrize("markup", MARKUP)
def test_markup_stands_in_code_only(markup: str) -> None:
    """Case B140: wherever captured text stands, it is inside a code span or a fenced block."""
    said = records(
        ("c2s", {"jsonrpc": "2.0", "id": markup, "method": "tools/call", "params": {"name": markup, "x": markup}}),
        ("s2c", {"jsonrpc": "2.0", "id": markup, "error": {"code": 1, "message": markup}}),
        ("s2c", {"jsonrpc": "2.0", "method": markup, "params": {"a": markup}}),
        ("s2c", f"{markup}\n```\n~~~"),
        ("err", markup),
    )
    page = markdown(said, label=markup, argv=[markup], cwd=markup)
    assert markup in page
    outside = _without_code(page)
    assert markup not in outside
    assert json.dumps(markup) not in outside
    for piece in ("script", "x.test", "heading", "somebody", "bold", "| a |"):
        assert piece not in outside


def _without_code(page: str) -> str:
    """What is left of a page when its fenced blocks and code spans are taken out, as CommonMark finds them."""
    outside, fence = [], ""
    for line in page.split("\n"):
        if fence:
            fence = "" if line.strip() == fence else fence
        elif opened := re.match(r"`{3,}(?=\w*$)", line):
            fence = opened[0]
        else:
            outside.append(re.sub(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", "", line))
    assert not fence
    return "\n".join(outside)


def test_rich_markup_is_text() -> None:
    said = [*OPENS, *records(("s2c", "[bold red]x[/] [link=http://x.test]y[/link] :smile:"))[3:]]
    assert "[bold red]x[/] [link=http://x.test]y[/link] :smile:" in text(said)
