"""The small parser of `mcpsniff stdio`, and what a wrong command line does."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mcpsniff.cli.options import STDIO, HelpAskedError, default, parse
from mcpsniff.errors import UsageError
from tests.proxy.wrapped import environment

DEFAULTS = {option.name: default(option) for option in STDIO}


@pytest.mark.parametrize(
    ("words", "changed", "command"),
    [
        (["--", "cat"], {}, ["cat"]),
        (["cat", "-o", "x", "--", "y"], {}, ["cat", "-o", "x", "--", "y"]),
        (["--", "--odd"], {}, ["--odd"]),
        (["-o", "a", "--", "cat"], {"output": "a"}, ["cat"]),
        (["-oa", "--", "cat"], {"output": "a"}, ["cat"]),
        (["--output=a=b", "--", "cat"], {"output": "a=b"}, ["cat"]),
        (["--dir", "--", "--", "cat"], {"dir": "--"}, ["cat"]),
        (["--dir=", "--", "cat"], {"dir": ""}, ["cat"]),
        (["--grace", "0.5", "--quiet", "--", "cat"], {"grace": 0.5, "quiet": True}, ["cat"]),
        (["--label", "a", "--label", "b", "--", "cat"], {"label": "b"}, ["cat"]),
        (["--addon", "a.py", "--addon=b.py", "x"], {"addon": ["a.py", "b.py"]}, ["x"]),
        (["--no-transcript", "--keep-secrets", "x"], {"no_transcript": True, "keep_secrets": True}, ["x"]),
        (["--"], {}, []),
        ([], {}, []),
        (["-", "x"], {}, ["-", "x"]),
    ],
)
def test_words_become_options_and_a_command(words: list[str], changed: dict[str, object], command: list[str]) -> None:
    assert parse(STDIO, words) == ({**DEFAULTS, **changed}, command)


@pytest.mark.parametrize(
    ("words", "meant"),
    [(["--lable", "x"], "--label"), (["--output-file=x"], "--output"), (["--hlep"], "--help"), (["--zzz"], None)],
)
def test_the_nearest_option_is_suggested(words: list[str], meant: str | None) -> None:
    with pytest.raises(UsageError) as raised:
        parse(STDIO, words)
    hint = "" if meant is None else f"; did you mean {meant}?"
    assert str(raised.value) == f"no such option: {words[0].partition('=')[0]}{hint}"


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--nope", "--", "cat"], "--nope"),
        (["-x"], "-x"),
        (["--dir"], "--dir"),
        (["--quiet=yes"], "--quiet"),
        (["--grace", "soon"], "soon"),
        (["--grace", "-1"], "-1"),
        (["--grace", "nan"], "nan"),
        (["--grace=inf"], "inf"),
    ],
)
def test_a_wrong_word_is_named(words: list[str], named: str) -> None:
    with pytest.raises(UsageError, match=named):
        parse(STDIO, words)


def test_help_is_left_to_others() -> None:
    with pytest.raises(HelpAskedError):
        parse(STDIO, ["--quiet", "--help"])
    assert parse(STDIO, ["cat", "--help"])[1] == ["cat", "--help"]


@pytest.mark.parametrize(
    "words", [["--"], [], ["--", ""], ["--nope", "--", "touch", "{mark}"], ["--grace=x", "touch", "{mark}"]]
)
def test_bad_usage_starts_nothing(tmp_path: Path, words: list[str]) -> None:
    mark = tmp_path / "mark"
    words = [word.format(mark=mark) for word in words]
    env = environment(MCPSNIFF_DIR=str(tmp_path / "captures"))
    command = [sys.executable, "-m", "mcpsniff", "stdio", *words]
    done = subprocess.run(command, capture_output=True, text=True, env=env, stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("mcpsniff stdio: ")
    assert done.stderr.endswith(" (try mcpsniff stdio --help)\n")
    assert os.listdir(tmp_path) == []


def test_windows_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from mcpsniff.__main__ import main

    monkeypatch.setattr(sys, "platform", "win32")
    assert main(["stdio", "--", "cat"]) == 2
    assert "Windows" in capsys.readouterr().err


def test_the_wrapper_starts_the_server_before_anything_heavy_is_loaded() -> None:
    script = "import sys, mcpsniff.proxy.stdio, mcpsniff.cli.options; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment())
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    heavy = {"mitmproxy", "aiohttp", "rich", "asyncio", "ssl", "click", "orjson", "platformdirs", "subprocess"}
    assert "mcpsniff" in loaded
    assert not loaded & (heavy | {"typing", "json", "threading", "socket", "dataclasses", "argparse", "difflib"})
