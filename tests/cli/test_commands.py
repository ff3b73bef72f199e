"""The other commands, wrong usage, and the line between click and the fast path of `mcpsniff stdio`."""

import json
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from mcpsniff import __version__
from mcpsniff.checks import load
from mcpsniff.cli import main
from mcpsniff.cli.main import COMMANDS, cli
from mcpsniff.cli.options import INTERCEPTING, STDIO
from tests.capture.capture_files import save
from tests.cli.running import on_terminal, run
from tests.transcript.golden import SESSION

CODES = sorted(load())


def test_version_and_help() -> None:
    assert run("--version").out == f"mcpsniff {__version__}\n"
    for words in (["--help"], ["-h"], []):
        ran = run(*words)
        assert ran.status == 0
        assert all(f"  {name} " in ran.out for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("option", ["--help", "-h"])
def test_every_command_has_help(name: str, option: str) -> None:
    ran = run(name, option)
    assert (ran.status, ran.err) == (0, "")
    assert ran.out.startswith(f"Usage: mcpsniff {name}")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["shwo"], "mcpsniff: no such command: shwo; did you mean show?"),
        (["--nonsense"], "mcpsniff: no such option"),
        (["show", "--nonsense"], "mcpsniff show: no such option"),
        (["show", "--format", "xml"], "mcpsniff show: invalid value for '--format'"),
        (["show", "-", "-"], "standard input can be read only once"),
        (["show", "--hex"], "--hex shows the bytes of one message, and needs --at N"),
        (["show", "-o"], "mcpsniff show: option '-o' requires an argument"),
        (["list", "x"], "mcpsniff list: got unexpected extra argument"),
        (["explain", "MCP999"], "mcpsniff explain: there is no finding MCP999; did you mean"),
        (["explain", "stdio-not-jsn"], "did you mean stdio-not-json?"),
        (["explain", "\x1b[31m"], "there is no finding \\x1b[31m"),
        (["demo", "x"], "mcpsniff demo: got unexpected extra argument"),
        (["stdio"], "no command given"),
        (["stdio", "--"], "no command given"),
        (["stdio", "--nonsense", "--", "true"], "no such option: --nonsense"),
        (["stdio", "--grace", "x", "--", "true"], "needs a number of seconds"),
    ],
)
def test_wrong_usage(words: list[str], says: str) -> None:
    ran = run(*words)
    assert (ran.status, ran.out) == (2, "")
    assert says in ran.err
    assert ran.err.count("\n") == 1


def test_list(tmp_path: Path) -> None:
    folder = tmp_path / "captures"
    empty = run("list", "--dir", str(folder))
    assert empty.status == 0
    assert "There is no capture in" in empty.out
    assert run("list", "--json", "--dir", str(folder)).out == ""
    folder.mkdir(0o700)
    save(folder, "time-20261129T100000.000Z-1.mcpcap", SESSION, transport="stdio", argv=["a", "b"])
    (folder / "bad\x1b[1m-20261130T100000.000Z-1.mcpcap").write_bytes(b"nonsense")
    shown = run("list", "--dir", str(folder))
    assert shown.status == 0
    assert re.search(r"2026-11-\d\d \d\d:\d\d:00 .* time-20261129T100000.000Z-1$", shown.out, re.MULTILINE)
    assert "unreadable: " in shown.out
    assert "\x1b" not in shown.out
    first, second = (json.loads(line) for line in run("list", "--json", "--dir", str(folder)).out.splitlines())
    entries = {entry["label"]: entry for entry in (first, second)}
    good = entries["time"]
    assert good["path"] == str(folder / "time-20261129T100000.000Z-1.mcpcap")
    assert good["started"] == "2026-11-29T10:00:00.000000Z"
    assert (good["transport"], good["argv"], good["parts"], good["problem"]) == ("stdio", ["a", "b"], 1, None)
    assert good["size"] == (folder / "time-20261129T100000.000Z-1.mcpcap").stat().st_size
    assert "not a capture" in entries["bad\x1b[1m"]["problem"]


@pytest.mark.parametrize("code", CODES)
def test_every_code_is_explained(code: str, capsys: pytest.CaptureFixture[str]) -> None:
    check = load()[code]
    assert main.run(["explain", code.lower()]) == 0
    by_code = capsys.readouterr().out
    assert main.run(["explain", check.name]) == 0
    assert capsys.readouterr().out == by_code
    assert by_code.startswith(f"{code} {check.name}\n")
    assert f"severity   {check.severity}" in by_code
    assert "\nFix: " in by_code
    assert "``" not in by_code


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("MCP101", "error: a MUST is broken, provable from these bytes"),
        ("MCP556", "error: no rule is broken: the exchange failed"),
        ("MCP560", "warning: no rule is broken: an exchange may have failed"),
        ("MCP902", "warning: no rule is broken: mcpsniff may be in the way, or what it shows may be incomplete"),
        ("MCP904", "note: unusual but allowed"),
    ],
)
def test_a_severity_says_what_it_means_for_who_is_to_blame(
    code: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(["explain", code]) == 0
    assert f"severity {said} " in " ".join(capsys.readouterr().out.split())


def test_explain_lists_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["explain"]) == 0
    listed = capsys.readouterr().out
    assert [line.split()[0] for line in listed.splitlines()] == CODES
    assert "``" not in listed


@pytest.mark.parametrize("columns", [40, 80, 130])
@pytest.mark.parametrize("words", [[], ["MCP409"], ["MCP303"] if "MCP303" in CODES else ["MCP301"]])
def test_explanations_fit_the_terminal(words: list[str], columns: int) -> None:
    ran = on_terminal("explain", *words, columns=columns)
    assert ran.status == 0
    assert max(map(len, ran.out.splitlines())) <= columns
    assert ("".join(words) or CODES[-1]) in ran.out


def test_an_unforeseen_error_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("boom\x1b")

    monkeypatch.setattr("mcpsniff.cli.list_.list_captures", broken)
    monkeypatch.setattr("mcpsniff.cli.main._drop_output", lambda: None)
    assert main.run(["list"]) == 70
    assert capsys.readouterr().err == (
        "mcpsniff: this is a bug in mcpsniff, please report it: RuntimeError: boom\\x1b"
        " (MCPSNIFF_DEBUG=1 shows where)\n"
    )


def test_clicks_stdio_is_the_option_table() -> None:
    """The fast path parses by the table; click's command, from which the help comes, is the same."""
    command = cli.get_command(click.Context(cli), "stdio")
    assert command is not None
    options = {tuple(param.opts): param for param in command.params if isinstance(param, click.Option)}
    assert set(options) == {option.spellings for option in STDIO}
    for option in STDIO:
        mirrored = options[option.spellings]
        assert (mirrored.name, mirrored.is_flag, mirrored.help) == (option.name, option.metavar is None, option.help)
        assert mirrored.metavar == option.metavar
        assert (mirrored.default or None) == (option.default or None)


def test_nothing_heavy_is_loaded_for_the_overview() -> None:
    code = (
        "import sys; from mcpsniff.cli.main import run; run(['--help']);"
        "assert not {'rich', 'mcpsniff.decoder', 'jsonschema', 'mitmproxy'} & set(sys.modules), 'heavy'"
    )
    assert subprocess.run([sys.executable, "-c", code], stdout=subprocess.DEVNULL).returncode == 0


@pytest.mark.parametrize(
    ("word", "begins"),
    [("MCP54", "MCP54"), ("mcp5XX", "MCP5"), ("5", "MCP5"), ("MCP5*", "MCP5"), ("*", "MCP"), ("54?", "MCP54")],
)
def test_a_family_of_findings_is_listed(word: str, begins: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["explain", word]) == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert listed == [code for code in CODES if code.startswith(begins)]
    assert len(listed) > 5


def test_findings_are_listed_by_the_beginning_of_their_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["explain", "auth"]) == 0
    names = [line.split()[1] for line in capsys.readouterr().out.splitlines()]
    assert names == [load()[code].name for code in CODES if load()[code].name.startswith("auth")]
    assert len(names) > 5
    assert main.run(["explain", "MCP7xx"]) == 2
    assert "there is no finding MCP7xx; `mcpsniff explain` lists them all" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["stdio", "http", "forward", "run"])
def test_options_that_change_messages_stand_apart_in_the_help(name: str) -> None:
    plain, changing = run(name, "--help").out.split("\nOptions that change messages:\n")
    assert "\nOptions:\n  -o, --output FILE" in plain
    assert "--help" in plain
    options = {option.spellings[0] for option in INTERCEPTING}
    assert all(f"  {option} " in changing and f"  {option} " not in plain for option in options)
