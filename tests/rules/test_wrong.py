"""Rules that are none: what is said, and where it is."""

import re
from pathlib import Path

import pytest

from mcpsniff.errors import UsageError
from mcpsniff.proxy.interception import prepare
from mcpsniff.proxy.rules.reading import rules_from
from tests.cli.running import run
from tests.rules.test_actions import NONE

OPTIONS = [
    ("block", "tool:a state:open", "--block: filter, column 8: state: cannot be asked here"),
    ("block", "tol:a", "--block: filter, column 1: there is no field tol; did you mean tool?"),
    ("block", "latency:>1s", "--block: only answers have a latency"),
    (
        "block",
        "resource:",
        "--block: filter, column 10: resource: needs a value directly after the colon\n  resource:\n",
    ),
    ("block", "resource:a foo:b", "--block: filter, column 12: there is no field foo"),
    ("block", "", "--block: filter, column 1: the expression is empty"),
    ("map_tool", "echo", "--map-tool: echo has no other name: NAME=OTHER"),
    ("map_tool", "=say", "--map-tool: =say has no name"),
    ("map_tool", "echo=", "--map-tool: echo= has no other name"),
    ("set_argument", "city=Paris", '--set-argument: Paris is not JSON; did you mean "Paris"?'),
    ("set_argument", "city", "--set-argument: city has no value: [TOOL.]NAME=JSON"),
    ("set_argument", "a.=1", "--set-argument: a. is no argument of a tool"),
    ("set_argument", ".a=1", "--set-argument: .a is no argument of a tool"),
    ("set_argument", "a=NaN", "--set-argument: JSON cannot say this"),
    ("set_argument", "a=", "--set-argument: nothing is not JSON"),
    ("set_argument", "a=[1e999]", "--set-argument: a number is infinite, or beyond what a double holds"),
    ("set_argument", f"a={'9' * 5000}", "--set-argument: a number has more digits than can be passed on"),
    ("set_argument", f"a={'[' * 400}{']' * 400}", "--set-argument: this is nested deeper than 200 levels"),
    ("set_argument", f"{'a' * 10_000}.b=1", f"--set-argument: {'a' * 40}… is longer than any name of a tool"),
    ("set_header", "a b=c", "--set-header: a b is no name of a header"),
    ("set_header", "Content-Length=3", "--set-header: Content-Length says how the bytes travel"),
    ("set_header", "transfer-encoding=", "--set-header: transfer-encoding says how the bytes travel"),
    ("set_header", "X=a\r\nY: b", "--set-header: the header X has a control character in it"),
    ("set_header", "X=北", "--set-header: the header X has a character that HTTP cannot carry"),
    ("respond", "tool:a", "--respond: tool:a has no answer"),
    ("respond", "={}", "--respond: ={} has no answer"),
    ("respond", "tool:a={a:1}", "--respond: {a:1} is not JSON"),
    ("respond", "tool:a=7", "--respond: an answer is an object"),
    ("respond", "tool:a=@/nowhere/x.json", "--respond: /nowhere/x.json cannot be read: No such file"),
    ("respond", "tool:={}", "--respond: filter, column 6: tool: needs a value"),
    (
        "respond",
        "tool:a=@~nobody-has-this-name/x",
        "--respond: ~nobody-has-this-name/x cannot be read: there is no such",
    ),
    ("respond", 'tool:a={"a":1e999}', "--respond: a number is infinite"),
    ("rules", "~nobody-has-this-name/x.toml", "~nobody-has-this-name/x.toml cannot be read: there is no such user"),
    ("rules", "/nowhere/x.toml", "/nowhere/x.toml cannot be read: No such file"),
]


@pytest.mark.parametrize(("option", "value", "sentence"), OPTIONS)
def test_an_option_that_is_wrong(option: str, value: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=re.escape(sentence)):
        rules_from({**NONE, option: [value]}, "http")


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (["a=b", "a=c"], "--map-tool a=c: the tool a has another name already, b"),
        (["a=b", "c=b"], "--map-tool c=b: another tool is called b already"),
    ],
)
def test_names_that_cannot_be(values: list[str], sentence: str) -> None:
    with pytest.raises(UsageError, match=re.escape(sentence)):
        rules_from({**NONE, "map_tool": values}, "http")


def test_pipes_have_no_headers(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--set-header: pipes have no headers"):
        rules_from({**NONE, "set_header": ["A=b"]}, "stdio")
    file = tmp_path / "r.toml"
    file.write_text("[[rule]]\nheader = { A = 'b' }\n", encoding="utf-8")
    said: list[str] = []
    assert rules_from({**NONE, "rules": [str(file)]}, "stdio", said.append) == []
    assert said == ["rules about headers are left out, since pipes have none: r.toml #1"]
    file.write_text("[[rule]]\nwhen = 'tool:a'\ndrop = true\n[[rule]]\nheader = { 'a b' = 'c' }\n", encoding="utf-8")
    with pytest.raises(UsageError, match=r"r\.toml, line 5: a b is no name of a header"):
        rules_from({**NONE, "rules": [str(file)]}, "stdio")


FILES = [
    ("", "r.toml has no rules; one begins with [[rule]]"),
    ("[[rule]\n", "r.toml is not TOML: "),
    ("a = 1\n[[rule]]\n", "r.toml, line 1: a file of rules has no a; a rule begins with [[rule]]"),
    ("\n[[rules]]\nwhen='a'\n", "r.toml, line 2: a file of rules has no rules; a rule begins with [[rule]]"),
    ("#\n[rule]\nwhen='a'\ndrop=true\n", "r.toml, line 2: a rule is a table that begins with [[rule]]"),
    ("[[rule]]\nwhen='a'\n", "r.toml, line 1: the rule does nothing; it is one of block, drop"),
    ("[[rule]]\nwhen='a'\ndrop=true\nblock=true", "r.toml, line 4: drop and block: a rule does one thing"),
    ("[[rule]]\ndrop=true\n", "r.toml, line 2: the rule does not say when"),
    ("[[rule]]\nwhen='a'\n\n drpo = true\n", "r.toml, line 4: a rule has no drpo; did you mean drop?"),
    ("[[rule]]\nwhen='a'\n[rule.settt]\nx=1\n", "r.toml, line 3: a rule has no settt; did you mean set?"),
    ("[[rule]]\nwhen='tool:'\ndrop=true\n", "r.toml, line 2: filter, column 6: tool: needs a value"),
    ("[[rule]]\nwhen=7\ndrop=true\n", "r.toml, line 2: when is a text"),
    ("[[rule]]\nwhen=''\ndrop=true\n", "r.toml, line 2: when is a text"),
    ("[[rule]]\nwhen='a'\ndrop=false\n", "r.toml, line 3: drop is true"),
    ("[[rule]]\nwhen='a'\nblock=''\n", "r.toml, line 3: block is true, or a text"),
    ("[[rule]]\nwhen='latency:>1s'\nblock=true\n", "r.toml, line 2: block acts on requests"),
    ("[[rule]]\nwhen='a'\nrespond='x'\n", "r.toml, line 3: an answer is an object"),
    ("[[rule]]\nwhen='a'\nrespond='@no.json'\n", "no.json cannot be read"),
    ("[[rule]]\nwhen='a'\nrespond={x=2026-01-01}\n", "r.toml, line 3: JSON has no dates and times"),
    ("[[rule]]\nwhen='a'\nset={x=[nan]}\n", "r.toml, line 3: JSON cannot say this"),
    ("[[rule]]\nwhen='a'\nset={}\n", "r.toml, line 3: set is a table such as"),
    ("[[rule]]\nwhen='a'\nset.params.x=1\n", 'r.toml, line 3: put the place in quotes: "params.x" = '),
    ("[[rule]]\nwhen='a'\nset={'a..b'=1}\n", "r.toml, line 3: a..b: not a path"),
    ("[[rule]]\nwhen='a'\nset={'a.**'=1}\n", "r.toml, line 3: a.**: a place ends with"),
    ("[[rule]]\nwhen='a'\nset={'[0].a'=1}\n", "r.toml, line 3: [0].a: a message has names"),
    ("[[rule]]\nwhen='a'\nremove=[]\n", "r.toml, line 3: remove is a place"),
    ("[[rule]]\nwhen='a'\nremove=[7]\n", "r.toml, line 3: a place is a text"),
    ("[[rule]]\nwhen='a'\nreplace={''='x'}\n", "r.toml, line 3: replace has texts"),
    ("[[rule]]\nwhen='a'\nreplace={a=1}\n", "r.toml, line 3: replace has texts"),
    ("[[rule]]\nwhen='a'\ndelay=5\n", "r.toml, line 3: a time is a text such as"),
    ("[[rule]]\nwhen='a'\ndelay='5'\n", "r.toml, line 3: 5 is no time: a unit belongs here"),
    ("[[rule]]\nwhen='a'\ndelay='2h'\n", "r.toml, line 3: 2h is more than an hour"),
    ("[[rule]]\nwhen='a'\nheader={A=1}\n", "r.toml, line 3: the header A is a text"),
    ("[[rule]]\nwhen='a'\nmap={a='b'}\n", "r.toml, line 2: map is for all calls and lists"),
    ("[[rule]]\nmap={a=1}\n", "r.toml, line 2: map has names of tools"),
    ("[[rule]]\nwhen='a'\ndrop=true\ntimes=0\n", "r.toml, line 4: times is a whole number, at least 1"),
    ("[[rule]]\nwhen='a'\ndrop=true\nafter=true\n", "r.toml, line 4: after is a whole number, at least 0"),
    ("[[rule]]\nwhen='a'\ndrop=true\n[[rule]]\nname=''\nwhen='b'\ndrop=true\n", "r.toml, line 5: name is a text"),
    ("x = " + "[" * 2000 + "]" * 2000, "r.toml is "),
    ("[[rule]]\nwhen='resource:a foo:b'\nblock=true\n", "r.toml, line 2: filter, column 12: there is no field foo"),
    ("[[rule]]\nwhen='a'\nrespond='@~nobody-has-this-name/x'\n", "r.toml, line 3: ~nobody-has-this-name/x cannot be"),
    (f"[[rule]]\nwhen='a'\nset={{x={'9' * 5000}}}\n", "r.toml has a number with more digits than can be read"),
    (f"[[rule]]\nwhen='a'\nset={{x=0x{'f' * 5000}}}\n", "r.toml, line 3: a number has more digits than can be passed"),
    (f"[[rule]]\nwhen='a'\nrespond.{'a.' * 3000}b=1\n", "r.toml, line 3: this is nested deeper than 200 levels"),
    (f"[[rule]]\nwhen='a'\nset.x.{'a.' * 3000}b=1\n", "r.toml, line 3: this is nested deeper than 200 levels"),
    (
        '[[rule]]\nwhen="a"\nwhy="""\n[[rule]]\ndrop=1\n\\"""[[rule]]"""\ndrop=true\n[[rule]]\nwhen="a"\ndrop=1',
        "r.toml, line 10: drop",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "sentence"), FILES)
def test_a_file_that_is_wrong(text: str, sentence: str, tmp_path: Path) -> None:
    file = tmp_path / "r.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=re.escape(sentence)) as caught:
        rules_from({**NONE, "rules": [str(file)]}, "http")
    assert "r.toml" in str(caught.value) or "no.json" in str(caught.value)


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    file = tmp_path / "r.toml"
    file.write_bytes(b"[[rule]]\n# \xff\n")
    with pytest.raises(UsageError, match=r"r\.toml is not UTF-8, at byte 12"):
        rules_from({**NONE, "rules": [str(file)]}, "http")
    with pytest.raises(UsageError, match="cannot be read: Is a directory"):
        rules_from({**NONE, "rules": [str(tmp_path)]}, "http")


def test_a_wrong_expression_in_a_file_is_pointed_at(tmp_path: Path) -> None:
    file = tmp_path / "r.toml"
    file.write_text("[[rule]]\ndrop = true\nwhen = 'tool:a stat:open'\n", encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        rules_from({**NONE, "rules": [str(file)]}, "http")
    first, *pointing = caught.value.lines
    assert first.endswith("r.toml, line 3: filter, column 8: there is no field stat; did you mean state?")
    assert pointing == ["  tool:a stat:open", "         ^"]


@pytest.mark.parametrize(
    "option", ["addon", "set", "rules", "block", "map_tool", "respond", "fault", "fault_from", "break"]
)
def test_options_are_utf_8(option: str) -> None:
    with pytest.raises(UsageError, match=rf"^--{option.replace('_', '-')} noise=\udcff is not UTF-8$"):
        prepare({option: ["noise=\udcff"]}, "stdio", print)


def test_control_characters_of_rules_reach_no_terminal(tmp_path: Path) -> None:
    file = tmp_path / "r.toml"
    file.write_text('[[rule]]\nwhen="a"\ndelay="\\u001b5\\u202e"\n', encoding="utf-8")
    said = run("stdio", "--rules", str(file), "--", "true").err
    said += run("stdio", "--map-tool", "a=\x1bb\u202e\n", "-o", str(tmp_path / "x.mcpcap"), "--", "true").err
    assert "r.toml, line 3: \\x1b5\\u202e is no time" in said
    assert "the rule --map-tool a=\\x1bb\\u202e\\n matched nothing" in said
    assert all(line.isprintable() for line in said.split("\n"))


@pytest.mark.parametrize(
    "words",
    [
        ("stdio", "--block", "tool:a state:open", "--", "touch", "FILE"),
        ("http", "--block", "tool:a state:open", "http://127.0.0.1:9"),
    ],
)
def test_nothing_is_started_with_a_wrong_rule(words: tuple[str, ...], tmp_path: Path) -> None:
    file = tmp_path / "started"
    ran = run(*(str(file) if word == "FILE" else word for word in words), env={"MCPSNIFF_DIR": str(tmp_path / "none")})
    assert (ran.status, ran.out) == (2, "")
    first, *pointing = ran.err.splitlines()
    assert first.startswith(f"mcpsniff {words[0]}: --block: filter, column 8: state: cannot be asked here: ")
    assert first.endswith(f"(try mcpsniff {words[0]} --help)")
    assert pointing == ["  tool:a state:open", "         ^"]
    assert list(tmp_path.iterdir()) == []
