"""How a command is started: as a shell would, with what the parent meant it to have."""

import os
import signal
import stat
from pathlib import Path

import pytest

from tests.proxy.wrapped import Wrapped, environment


def script(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("by_path", [True, False])
@pytest.mark.parametrize("ignoring", [True, False])
def test_a_script_without_an_interpreter_line_is_run_by_the_shell(
    tmp_path: Path, by_path: bool, ignoring: bool
) -> None:
    server = script(tmp_path / "my-server", 'echo "got $1 $#"; cat; exit 5\n')
    env = environment(PATH=f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    ignore = (lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN) and None) if ignoring else None
    command = [str(server) if by_path else server.name, "a b", ""]
    with Wrapped(tmp_path, command, env=env, preexec=ignore) as wrapped:
        wrapped.send(b"x\n")
        wrapped.stdin.close()
        assert wrapped.read_all() == b"got a b 2\nx\n"
        assert wrapped.wait() == 5
    assert wrapped.capture().header["argv"] == command


def test_an_empty_executable_does_nothing_well(tmp_path: Path) -> None:
    with Wrapped(tmp_path, [str(script(tmp_path / "empty", ""))]) as wrapped:
        assert wrapped.end() == 0


def test_a_program_for_another_machine_is_not_run_by_the_shell(tmp_path: Path) -> None:
    server = script(tmp_path / "alien", b"\x7fELF\x02\x01\x01\0\0\0echo no\n")
    with Wrapped(tmp_path, [str(server)]) as wrapped:
        assert wrapped.read_all() == b""
        assert wrapped.wait() == 126
    assert f"cannot execute {server}: " in wrapped.stderr.decode()


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b"#!/no/such/python3\n", "its interpreter /no/such/python3 is missing\n"),
        (b"#! /no/such/env node\n", "its interpreter /no/such/env is missing\n"),
        (b"#!/bin/sh\r\necho\r\n", "its first line ends in a carriage return, as on Windows"),
    ],
)
@pytest.mark.parametrize("by_path", [True, False])
def test_a_missing_interpreter_is_called_by_its_name(tmp_path: Path, line: bytes, says: str, by_path: bool) -> None:
    server = script(tmp_path / "my-server", line)
    env = environment(PATH=f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    with Wrapped(tmp_path, [str(server) if by_path else server.name], env=env) as wrapped:
        assert wrapped.wait() == 127
    assert says in wrapped.stderr.decode()
    assert wrapped.stderr.count(b"\n") == 1
    assert b"\r" not in wrapped.stderr


@pytest.mark.parametrize("ignored", [True, False])
def test_an_ignored_child_signal_stays_ignored_for_the_server_alone(tmp_path: Path, ignored: bool) -> None:
    ignore = (lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN) and None) if ignored else None
    python = environment()["PYTHONPATH"]
    command = ["python3", "-c", "import signal; print(signal.getsignal(signal.SIGCHLD).name); raise SystemExit(9)"]
    with Wrapped(tmp_path, command, preexec=ignore, env=environment(PYTHONPATH=python)) as wrapped:
        assert wrapped.read_line() == (b"SIG_IGN\n" if ignored else b"SIG_DFL\n")
        assert wrapped.end() == 9


def test_what_is_no_folder_is_not_called_open(tmp_path: Path) -> None:
    place = tmp_path / "file"
    place.write_text("")
    place.chmod(0o644)
    with Wrapped(tmp_path, ["cat"], "--dir", str(place)) as wrapped:
        assert wrapped.end() == 0
    (line,) = wrapped.stderr.decode().splitlines()
    assert "Not a directory; the session goes on without a capture" in line


@pytest.mark.parametrize(
    ("options", "command", "lines"),
    [([], "cat", 2), (["--quiet"], "cat", 0), ([], "no-such-server", 1), (["--quiet"], "no-such-server", 1)],
)
def test_an_open_folder_is_no_topic_when_it_should_not_be(
    tmp_path: Path, options: list[str], command: str, lines: int
) -> None:
    place = tmp_path / "open"
    place.mkdir()
    place.chmod(0o755)
    with Wrapped(tmp_path, [command], "--dir", str(place), *options) as wrapped:
        wrapped.end()
    said = wrapped.stderr.decode().splitlines()
    assert len(said) == lines
    assert ("is open to others" in wrapped.stderr.decode()) == (lines == 2)
    assert len(list(place.glob("*.mcpcap"))) == 1


def test_quiet_does_not_hide_that_there_is_no_capture(tmp_path: Path) -> None:
    place = tmp_path / "file"
    place.write_text("")
    with Wrapped(tmp_path, ["cat"], "--quiet", "-o", str(place / "x.mcpcap")) as wrapped:
        assert wrapped.end() == 0
    assert b"goes on without a capture" in wrapped.stderr
    assert stat.S_ISREG(place.stat().st_mode)
