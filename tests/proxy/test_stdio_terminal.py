"""A server that asks on the terminal itself (ssh, sudo), and the job control of a shell."""

import fcntl
import os
import pty
import signal
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.proxy.wrapped import PATIENCE, environment, is_gone, wait_for

ASKS = "printf 'password: ' > /dev/tty; read x < /dev/tty; echo got $x; exec cat"
SETS = "stty -echo < /dev/tty; " + ASKS.replace("echo", "stty echo < /dev/tty; echo", 1)

SHELL = """
import os, signal, sys
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
def foreground(group):
    os.tcsetpgrp(3, group)
background = sys.argv[1] == "&"
job = os.fork()
if not job:
    os.setpgid(0, 0)
    if not background:
        foreground(os.getpid())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    os.execv(sys.argv[2], sys.argv[2:])
while True:
    _, status = os.waitpid(job, os.WUNTRACED)
    foreground(os.getpgrp())
    if not os.WIFSTOPPED(status):
        break
    os.write(2, b"stopped\\n")
    os.read(4, 1)
    foreground(job)
    os.killpg(job, signal.SIGCONT)
sys.exit(os.waitstatus_to_exitcode(status))
"""
"""A shell with one job, which it continues in the foreground when a byte arrives on descriptor 4."""

CLIENT = """
import os, subprocess, sys
raw = sys.argv.pop(1) == "raw"
if raw:
    import tty
    tty.setcbreak(3)
sys.exit(subprocess.run(sys.argv[1:]).returncode)
"""
"""A client in the foreground, in whose group the wrapper is; one that reads key by key, or one that does not."""


class OnTerminal:
    """A process that leads a session on its own terminal (descriptor 3); its streams are pipes, or the terminal."""

    def __init__(self, words: list[str], *, all_of_it: bool = False) -> None:
        self.screen, theirs = pty.openpty()
        self._said: dict[int, bytes] = {}
        ours: list[int] = []
        if all_of_it:
            streams = [theirs] * 3
            closed = []
            self.stdin = self.stdout = self.stderr = self.screen
        else:
            pipes = [os.pipe() for _ in range(3)]
            streams = closed = [pipes[0][0], pipes[1][1], pipes[2][1]]
            ours = [pipes[0][1], pipes[1][0], pipes[2][0]]
            self.stdin, self.stdout, self.stderr = ours
        self._ours = [self.screen, *ours]
        reading, self.command = os.pipe()

        def prepare() -> None:
            fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)
            copies = [fcntl.fcntl(descriptor, fcntl.F_DUPFD, 10) for descriptor in (theirs, reading)]
            for number, copy in zip((3, 4), copies, strict=True):
                os.dup2(copy, number)
                os.close(copy)

        self.process = subprocess.Popen(
            words,
            stdin=streams[0],
            stdout=streams[1],
            stderr=streams[2],
            start_new_session=True,
            preexec_fn=prepare,  # noqa: PLW1509 - as a terminal emulator does
            env=environment(),
            close_fds=False,
        )
        for descriptor in {theirs, reading, *closed}:
            os.close(descriptor)

    def sees(self, text: bytes, source: int) -> bool:
        """Read from one of our descriptors until a text appears; forget everything up to it."""
        os.set_blocking(source, False)

        def probe() -> bool:
            with suppress(OSError):
                self._said[source] = self._said.get(source, b"") + os.read(source, 4096)
            return text in self._said.get(source, b"")

        found = wait_for(probe)
        if found:
            self._said[source] = self._said[source].partition(text)[2]
        return found

    def type(self, text: bytes) -> None:
        os.write(self.screen, text)

    def close(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGCONT)
            self.process.kill()
            self.process.wait()
        for descriptor in self._ours:
            with suppress(OSError):
                os.close(descriptor)
        os.close(self.command)


def wrapper(folder: Path, script: str) -> list[str]:
    start = [sys.executable, "-m", "mcpsniff", "stdio", "--quiet", "--no-transcript", "--grace", "30"]
    return [*start, "--dir", str(folder / "captures"), "--", "sh", "-c", script]


@pytest.fixture
def opened() -> Iterator[list[OnTerminal]]:
    found: list[OnTerminal] = []
    yield found
    for one in found:
        one.close()


def asked(one: OnTerminal) -> None:
    """Wait for the question, and until the server has the terminal: nobody types faster than that."""
    assert one.sees(b"password: ", one.screen)
    assert wait_for(lambda: is_servers(os.tcgetpgrp(one.screen)))


def is_servers(group: int) -> bool:
    args = subprocess.run(["ps", "-o", "args=", "-p", str(group)], capture_output=True, text=True).stdout
    return args.startswith("sh -c")


def answer(one: OnTerminal) -> None:
    asked(one)
    one.type(b"secret\n")
    assert one.sees(b"got secret", one.stdout)


@pytest.mark.parametrize("script", [ASKS, SETS], ids=["reads", "sets"])
def test_a_server_may_ask_on_the_terminal(tmp_path: Path, opened: list[OnTerminal], script: str) -> None:
    one = OnTerminal(wrapper(tmp_path, script))
    opened.append(one)
    answer(one)
    assert wait_for(lambda: os.tcgetpgrp(one.screen) == one.process.pid)  # it has gone on to speak: we have it back
    os.write(one.stdin, b"ping\n")
    assert one.sees(b"ping\n", one.stdout)
    os.close(one.stdin)
    assert one.process.wait(PATIENCE) == 0


def test_what_is_typed_goes_to_whom_it_is_for(tmp_path: Path, opened: list[OnTerminal]) -> None:
    """Somebody tries a server by hand: all streams are the terminal, and the server asks on it in between."""
    script = "read line; echo first $line; sleep 0.3; " + ASKS.replace(
        "exec cat", "read line; echo last $line; exec cat"
    )
    one = OnTerminal(wrapper(tmp_path, script), all_of_it=True)
    opened.append(one)
    one.type(b"one\n")
    assert one.sees(b"first one", one.screen)
    answer(one)
    one.type(b"two\n")
    assert one.sees(b"last two", one.screen)
    one.type(b"\x04")
    assert one.process.wait(PATIENCE) == 0


def test_typed_input_that_the_server_leaves_goes_to_its_stdin(tmp_path: Path, opened: list[OnTerminal]) -> None:
    script = ASKS.replace("echo got $x;", "")
    one = OnTerminal(wrapper(tmp_path, script), all_of_it=True)
    opened.append(one)
    asked(one)
    one.type(b"secret\n")
    assert one.sees(b"secret", one.screen)
    one.type(b"ping\n")
    assert one.sees(b"ping\r\nping\r\n", one.screen)  # the echo of the terminal, and that of the server


def test_a_client_that_does_not_read_the_terminal_lends_it(tmp_path: Path, opened: list[OnTerminal]) -> None:
    one = OnTerminal([sys.executable, "-c", CLIENT, "cooked", *wrapper(tmp_path, ASKS)])
    opened.append(one)
    answer(one)
    assert wait_for(lambda: os.tcgetpgrp(one.screen) == one.process.pid)


def test_a_client_that_reads_keys_keeps_the_terminal(tmp_path: Path, opened: list[OnTerminal]) -> None:
    one = OnTerminal([sys.executable, "-c", CLIENT, "raw", *wrapper(tmp_path, ASKS)])
    opened.append(one)
    assert one.sees(b"the server is stopped: it wants the terminal", one.stderr)
    assert os.tcgetpgrp(one.screen) == one.process.pid


def test_ctrl_c_at_the_servers_question(tmp_path: Path, opened: list[OnTerminal]) -> None:
    one = OnTerminal(wrapper(tmp_path, ASKS))
    opened.append(one)
    asked(one)
    one.type(b"\x03")
    assert one.process.wait(PATIENCE) == 130


@pytest.mark.parametrize("asks", [True, False])
def test_ctrl_z_stops_both_and_fg_continues_both(tmp_path: Path, opened: list[OnTerminal], asks: bool) -> None:
    script = "echo $$; " + (ASKS if asks else "exec cat")
    one = OnTerminal([sys.executable, "-c", SHELL, "", *wrapper(tmp_path, script)])
    opened.append(one)
    assert one.sees(b"\n", one.stdout)
    if asks:
        asked(one)
    one.type(b"\x1a")
    assert one.sees(b"stopped\n", one.stderr)
    assert os.tcgetpgrp(one.screen) == one.process.pid
    os.write(one.stdin, b"meanwhile\n")
    os.write(one.command, b"f")
    if asks:
        one.type(b"secret\n")
        assert one.sees(b"got secret\n", one.stdout)
    assert one.sees(b"meanwhile\n", one.stdout)
    os.close(one.stdin)
    assert one.process.wait(PATIENCE) == 0


def test_the_server_stops_with_us(tmp_path: Path, opened: list[OnTerminal]) -> None:
    script = "echo $$; i=0; while :; do i=$((i+1)); echo $i > count; sleep 0.05; done"
    one = OnTerminal([sys.executable, "-c", SHELL, "", *wrapper(tmp_path, f"cd '{tmp_path}'; {script}")])
    opened.append(one)
    assert wait_for((tmp_path / "count").exists)
    one.type(b"\x1a")
    assert one.sees(b"stopped\n", one.stderr)

    pid = os.read(one.stdout, 100).decode().strip()

    def state() -> str:
        return subprocess.run(["ps", "-o", "stat=", "-p", pid], capture_output=True, text=True).stdout[:1]

    assert wait_for(lambda: state() == "T")
    os.write(one.command, b"f")
    assert wait_for(lambda: state() != "T")
    one.type(b"\x03")
    assert one.process.wait(PATIENCE) == 130


def test_a_job_in_the_background_waits_for_the_terminal(tmp_path: Path, opened: list[OnTerminal]) -> None:
    """As the server does that is started so: the shell reports the job as stopped, and fg lets it ask."""
    one = OnTerminal([sys.executable, "-c", SHELL, "&", *wrapper(tmp_path, ASKS)])
    opened.append(one)
    assert one.sees(b"stopped\n", one.stderr)
    os.write(one.command, b"f")
    answer(one)
    os.close(one.stdin)
    assert one.process.wait(PATIENCE) == 0


def test_a_hung_up_terminal_leaves_nothing(tmp_path: Path, opened: list[OnTerminal]) -> None:
    one = OnTerminal(wrapper(tmp_path, f"echo $$ > '{tmp_path}/pid'; " + ASKS), all_of_it=True)
    opened.append(one)
    asked(one)
    os.close(one.screen)
    assert one.process.wait(PATIENCE) in (129, 0)  # 0 if the end of its input was quicker than the signal
    assert wait_for(lambda: is_gone(int((tmp_path / "pid").read_text())))
