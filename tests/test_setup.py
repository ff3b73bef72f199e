"""scripts/find-python.sh and scripts/environment.sh, with interpreters that are small shell scripts."""

import os
import subprocess
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[1]
FIND = REPO / "scripts" / "find-python.sh"
ENVIRONMENT = REPO / "scripts" / "environment.sh"
TOOLS = ("sh", "cat", "cksum", "dirname", "rm", "mkdir", "cp")


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def python(path: Path, version: str) -> Path:
    return program(path, f'echo "{version} {path}"')


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home whose PATH has nothing but bin/, with the few tools that the scripts need."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in TOOLS:
        found = next(Path(folder, name) for folder in os.defpath.split(":") if Path(folder, name).exists())
        (tools / name).symlink_to(found)
    return tmp_path


def find(home: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {"HOME": str(home), "PATH": str(home / "bin"), **environment}
    return subprocess.run([FIND], env=env, capture_output=True, text=True)


def test_a_shim_that_fails_is_passed_over(home: Path) -> None:
    program(home / "bin" / "python3.13", "echo 'pyenv: python3.13: command not found' >&2; exit 127")
    program(home / "bin" / "python3", "exit 1")  # too old: the probe's assertion fails
    chosen = python(home / ".pyenv" / "versions" / "3.12.1" / "bin" / "python", "3.12")
    done = find(home)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{chosen}\n", "")


@pytest.mark.parametrize(
    ("versions", "chosen"),
    [(("3.12", "3.14", "3.13"), "3.13"), (("3.12", "3.14"), "3.14"), (("3.12", "3.15"), "3.15"), (("3.12",), "3.12")],
)
def test_3_13_is_preferred_then_newer_then_3_12(home: Path, versions: tuple[str, ...], chosen: str) -> None:
    for version in versions:
        python(home / "bin" / f"python{version}", version)
    assert find(home).stdout == f"{home}/bin/python{chosen}\n"


def test_without_any_it_says_what_is_missing(home: Path) -> None:
    program(home / "bin" / "python3", '[ "$1" = --version ] && echo Python 3.11.2; exit 1')
    done = find(home)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "needs Python 3.12 or newer" in done.stderr
    assert "Python 3.11.2" in done.stderr


def test_the_one_asked_for_is_taken_or_refused(home: Path) -> None:
    python(home / "bin" / "python3.13", "3.13")
    mine = python(home / "mine", "3.12")
    assert find(home, PYTHON=str(mine)).stdout == f"{mine}\n"
    done = find(home, PYTHON=str(home / "absent"))
    assert done.returncode == 2
    assert "absent is not a working Python >= 3.12" in done.stderr


FAKE = """
case "$1 $2" in
    "-c import pip") ;;
    "-c "*) echo "3.13 $0" ;;
    "-m venv") mkdir -p "$3/bin"; cp "$0" "$3/bin/python" ;;
    "-m pip") echo "$@" >>"$LOG"; [ -z "$FAILING" ] ;;
    *) echo "Python 3.13.0" ;;
esac
"""


def installs(home: Path, *, failing: str = "", stage: str = "run") -> tuple[int, int]:
    """Run environment.sh; returns its exit status and how often pip has installed so far."""
    log = home / "log"
    env = {"HOME": str(home), "PATH": str(home / "bin"), "LOG": str(log), "FAILING": failing}
    command = [ENVIRONMENT, "venv", stage, "input", "--", "-e", "."]
    done = subprocess.run(command, env=env, cwd=home, capture_output=True, text=True)
    return done.returncode, len(log.read_text().splitlines()) if log.exists() else 0


def test_an_environment_is_made_once_and_again_when_its_input_changes_or_it_breaks(home: Path) -> None:
    program(home / "bin" / "python3.13", FAKE)
    (home / "input").write_text("one")
    assert installs(home) == (0, 1)
    assert installs(home) == (0, 1)
    assert installs(home, stage="dev") == (0, 2)
    assert installs(home, stage="dev") == (0, 2)

    marker = home / "venv" / "marker"
    marker.touch()
    (home / "input").write_text("two")
    assert installs(home) == (0, 3)
    assert not marker.exists()
    assert installs(home, stage="dev") == (0, 4)

    (home / "venv" / "bin" / "python").unlink()
    assert installs(home) == (0, 5)
    assert installs(home) == (0, 5)


def test_a_failed_installation_is_tried_again(home: Path) -> None:
    program(home / "bin" / "python3.13", FAKE)
    (home / "input").write_text("one")
    assert installs(home, failing="yes")[0] != 0
    assert installs(home) == (0, 2)
