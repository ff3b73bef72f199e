"""Shell completion: the scripts, and what they are told."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from mcpsniff.cli.main import COMMANDS
from tests.cli.listing import saved
from tests.cli.running import COMMAND, REPO, environment, run

HOSTILE = ["$(touch owned)", "a b", "`id`", "x;y", "\x1b[31m", "n\nl", "-o", "*", "~root"]


def completed(words: str, current: str, **env: str) -> list[str]:
    """What bash is offered for the word after ``words``."""
    line = f"{words} {current}".split(" ")
    ran = run(
        env={
            "_MCPSNIFF_COMPLETE": "bash_complete",
            "COMP_WORDS": f"{words} {current}",
            "COMP_CWORD": str(len(line) - 1),
            **env,
        }
    )
    assert (ran.status, ran.err) == (0, "")
    return [line for line in ran.out.splitlines() if line]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number, name in enumerate(("time", "time", "notes", "天气")):
        saved(tmp_path, name, days=number, number=number)
    for number, label in enumerate(HOSTILE):
        saved(tmp_path, f"evil{number}", label=label)
    return tmp_path


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts_and_how_to_install_them(shell: str) -> None:
    ran = run("completion", shell)
    assert ran.status == 0
    assert "_MCPSNIFF_COMPLETE" in ran.out
    assert f"{shell}_complete" in ran.out
    assert ran.err.splitlines()[-1].startswith("mcpsniff: put this line into ~/.")
    assert f"mcpsniff completion {shell}" in ran.err
    if shutil.which(shell):
        assert subprocess.run([shell, "-n"], input=ran.out.encode(), capture_output=True).stderr == b""


@pytest.mark.parametrize("words", [["completion"], ["completion", "tcsh"]])
def test_wrong_usage(words: list[str]) -> None:
    assert run(*words).status == 2


def test_commands_and_options() -> None:
    assert completed("mcpsniff", "") == [f"plain,{name}" for name in COMMANDS]
    assert completed("mcpsniff", "pr") == ["plain,prune"]
    assert "plain,--keep" in completed("mcpsniff prune", "--")
    assert "plain,--format" in completed("mcpsniff show", "--")
    assert completed("mcpsniff shwo", "x") == []


def test_labels_and_names(folder: Path) -> None:
    env = {"MCPSNIFF_DIR": str(folder)}
    for command in ("show", "tail"):
        offered = completed(f"mcpsniff {command}", "ti", **env)
        assert offered[0] == "plain,time"
        assert [word.startswith("plain,time-") for word in offered] == [False, True, True]
        assert completed(f"mcpsniff {command} --dir {folder}", "no")[0] == "plain,notes"
        assert completed(f"mcpsniff {command}", "./x", **env) == ["file,./x"]
        assert completed(f"mcpsniff {command}", "zzz", **env) == ["file,zzz"]
    assert completed("mcpsniff prune --label", "", **env) == ["plain,notes", "plain,time", "plain,天气"]


def test_nothing_is_offered_that_a_shell_would_run(folder: Path) -> None:
    for command in ("show", "tail", "prune --label"):
        for begun in ("", *(label[0] for label in HOSTILE if label[0] != "-")):
            for line in completed(f"mcpsniff {command}", begun.strip(), MCPSNIFF_DIR=str(folder)):
                kind, _, word = line.partition(",")
                assert kind == "file" or re.fullmatch(r"\w[\w.-]*", word), line


def test_an_unreadable_folder_offers_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert completed("mcpsniff prune --label", "", MCPSNIFF_DIR=str(tmp_path / "file")) == []


def test_an_unknown_instruction_is_refused() -> None:
    assert run(env={"_MCPSNIFF_COMPLETE": "nonsense"}).status == 1


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
def test_in_a_real_bash(folder: Path, tmp_path: Path) -> None:
    script = tmp_path / "mcpsniff"
    script.write_text(f'#!/bin/sh\nexec {" ".join(COMMAND)} "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    lines = (
        f'export PATH="{tmp_path}:$PATH"; eval "$(mcpsniff completion bash 2>/dev/null)";'
        'COMP_WORDS=(mcpsniff show ti); COMP_CWORD=2; _mcpsniff_completion mcpsniff; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "--norc", "-c", lines],
        capture_output=True,
        text=True,
        env=environment(MCPSNIFF_DIR=str(folder)),
        cwd=REPO,
    )
    assert done.stdout.splitlines()[0] == "time", done.stderr
