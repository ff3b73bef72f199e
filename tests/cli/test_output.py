"""A file that a command writes: it is whole or it is not there, also when the process is ended by a signal."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.capture.capture_files import save
from tests.redact.planted import pipes

WRITES = """
import signal, sys, time
from mcpsniff.cli.output import output
if sys.argv[2] == "ignored":
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
with output(sys.argv[1]) as stream:
    stream.write(b"half of ")
    stream.flush()
    print("begun", flush=True)
    if sys.argv[2] == "ignored":
        sys.stdin.readline()
    else:
        time.sleep(60)
    stream.write(b"it")
"""


def begun(folder: Path, how: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", WRITES, str(folder / "out"), how]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"begun\n"
    return process


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_leaves_nothing_and_ends_the_process(number: signal.Signals, tmp_path: Path) -> None:
    (tmp_path / "out").write_bytes(b"old")
    with begun(tmp_path, "") as process:
        assert len(list(tmp_path.iterdir())) == 2
        process.send_signal(number)
        assert process.wait(20) == -number
    assert [(one.name, one.read_bytes()) for one in tmp_path.iterdir()] == [("out", b"old")]


def test_a_signal_that_is_ignored_stays_so(tmp_path: Path) -> None:
    with begun(tmp_path, "ignored") as process:
        process.send_signal(signal.SIGHUP)
        process.communicate(b"\n", 20)
    assert [(one.name, one.read_bytes()) for one in tmp_path.iterdir()] == [("out", b"half of it")]


def test_redact_leaves_nothing_when_it_is_ended(tmp_path: Path) -> None:
    folder = tmp_path / "made"
    folder.mkdir()
    source = save(tmp_path, "a.mcpcap", pipes(*((2, b"x" * 40 + b"\n") for _ in range(20))), transport="stdio")
    command = [sys.executable, "-m", "mcpsniff", "redact", str(source), "-o", str(folder / "out")]
    with subprocess.Popen([*command, "--pattern", "(x+x+)+y"], stderr=subprocess.PIPE) as process:
        deadline = time.monotonic() + 20
        while not list(folder.iterdir()) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert [one.suffix for one in folder.iterdir()] == [".part"]
        process.terminate()
        assert process.communicate(timeout=20) == (None, b"")
    assert process.returncode == -signal.SIGTERM
    assert list(folder.iterdir()) == []
