"""The process of observing addons: how it ends, and what it says when something goes wrong."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.running import environment
from tests.proxy.wrapped import PATIENCE

CAPTURES = Path(__file__).resolve().parents[2] / "captures"
WEATHER = CAPTURES / "weather.mcpcap"
ADDON = """
def mcp_request(message):
    print(message.method, flush=True)
def done():
    print("done")
"""


def started(path: Path, *captures: Path) -> subprocess.Popen[bytes]:
    words = ["--addon", str(path), "--", *map(str, captures)]
    return subprocess.Popen(
        [sys.executable, "-m", "mcpsniff.cli.observe", *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    )


@pytest.fixture
def addon(tmp_path: Path) -> Path:
    path = tmp_path / "addon.py"
    path.write_text(ADDON)
    return path


def grown(folder: Path) -> Path:
    """A capture to which more may come: all but the end of a session, in a file that somebody holds."""
    path = folder / "growing.mcpcap"
    lines = WEATHER.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:20]))
    return path


def test_term_ends_it_in_order(addon: Path, tmp_path: Path) -> None:
    with started(addon, grown(tmp_path)) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"initialize\n"
        process.send_signal(signal.SIGINT)  # which is for the recorder
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert out.splitlines()[-1] == b"done"
    assert err == b""


def test_the_end_of_its_input_ends_it_when_all_is_told(addon: Path) -> None:
    with started(addon, WEATHER, CAPTURES / "modern.mcpcap") as process:
        out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert out.splitlines().count(b"tools/call") == 5
    assert out.splitlines()[-1] == b"done"
    assert err == b""


def test_a_capture_that_is_none_is_passed_over(addon: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.mcpcap"
    wrong.write_bytes(b"no capture\n")
    with started(addon, wrong, tmp_path / "nowhere.mcpcap", WEATHER) as process:
        out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert out.splitlines()[-1] == b"done"
    assert b"initialize" in out
    assert b"Traceback" not in err
    assert b"nowhere.mcpcap: No such file or directory" in err  # the other only if there was a look before the end
    assert all(line.startswith(b"mcpsniff: ") for line in err.splitlines())


def test_an_output_that_nobody_reads_ends_it_quietly(addon: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    words = [sys.executable, "-m", "mcpsniff.cli.observe", "--addon", str(addon), "--", str(WEATHER)]
    done = subprocess.run(
        words, stdin=subprocess.DEVNULL, stdout=writing, stderr=subprocess.PIPE, env=environment(), timeout=PATIENCE
    )
    os.close(writing)
    assert b"Traceback" not in done.stderr
    assert b"BrokenPipeError" in done.stderr  # the addon's print has failed, which is told with its line


@pytest.mark.parametrize("edits", [False, True])
def test_what_two_processes_say_of_an_addon_is_told_apart(tmp_path: Path, edits: bool) -> None:
    path = tmp_path / "addon.py"
    text = "def mcp_close(_close):\n    pass\ndef done():\n    raise ValueError('over')\n"
    path.write_text(text + "def mcp_edit(message):\n    return message\n" * edits)
    with started(path, WEATHER) as process:
        _, err = process.communicate(timeout=PATIENCE)
    (line,) = err.decode().splitlines()
    assert line.endswith("ValueError: over" + " (where it observes)" * edits)
