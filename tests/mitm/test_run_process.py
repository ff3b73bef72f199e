"""`mcpsniff run` and its client's process: streams, exit status, signals, the terminal with job control."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.proxy.test_stdio_terminal import SHELL, OnTerminal
from tests.proxy.wrapped import PATIENCE, Wrapped, environment, is_running, read_number, wait_for

FAKE = (sys.executable, "-m", "tests.mitm.fake_run")
PASSED = ["TERM", "INT", "HUP", "QUIT", "USR1", "USR2", "WINCH"]
COUNTS = """
import os, signal, sys, time
seen = []
def note(number, frame):
    os.write(1, f"got {signal.Signals(number).name}\\n".encode())  # print may be under way
for name in sys.argv[1:]:
    signal.signal(getattr(signal, "SIG" + name), note)
print("ready", os.getpid(), flush=True)
for line in iter(sys.stdin.readline, ""):
    print("read", line.strip(), flush=True)
    if line.strip() == "end":
        break
sys.exit(4)
"""


def state(pid: int) -> str:
    return subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True).stdout[:1]


def wrapped(folder: Path, *command: str) -> Wrapped:
    return Wrapped(folder, command, program=FAKE)


@pytest.mark.parametrize(
    ("script", "status"), [("exit 0", 0), ("exit 3", 3), ("kill -9 $$", 137), ("kill -TERM $$", 143), ("exit 255", 255)]
)
def test_the_exit_status_is_the_clients(tmp_path: Path, script: str, status: int) -> None:
    with wrapped(tmp_path, "sh", "-c", script) as run:
        assert run.end() == status


def test_streams_are_the_clients_own(tmp_path: Path) -> None:
    script = "import os, sys; print(*[os.readlink(f'/proc/self/fd/{n}') for n in range(3)])"
    if sys.platform != "linux":
        pytest.skip("needs /proc")
    with wrapped(tmp_path, sys.executable, "-c", script) as run:
        ours = [os.readlink(f"/proc/{run.process.pid}/fd/{n}") for n in range(3)]
        assert run.read_line().decode().split() == ours
        assert run.end() == 0


def test_everything_passes_both_ways(tmp_path: Path) -> None:
    with wrapped(tmp_path, "cat") as run:
        data = os.urandom(1 << 20)
        run.send_aside(data)
        assert run.read_all() == data
        assert run.wait() == 0


@pytest.mark.parametrize(
    ("name", "mode", "status", "text"),
    [
        ("no-such-client", None, 127, "command not found: no-such-client (PATH searched: "),
        ("./plain", 0o644, 126, "cannot execute ./plain: Permission denied"),
        ("./broken", 0o755, 127, "its interpreter /no/such is missing"),
    ],
)
def test_a_client_that_cannot_be_started(tmp_path: Path, name: str, mode: int | None, status: int, text: str) -> None:
    if mode is not None:
        path = tmp_path / name
        path.write_text("#!/no/such\n")
        path.chmod(mode)
        name = str(path)
    with wrapped(tmp_path, name) as run:
        assert run.end() == status
    assert text.replace("./", f"{tmp_path}/") in run.stderr.decode()
    assert b"nothing is recorded" not in run.stderr
    if mode != 0o755:
        assert not run.folder.exists()


def test_a_script_without_a_first_line_is_run_as_a_shell_does(tmp_path: Path) -> None:
    path = tmp_path / "script"
    path.write_text("echo by $0; exit 7\n")
    path.chmod(0o755)
    with wrapped(tmp_path, str(path)) as run:
        assert run.read_line() == f"by {path}\n".encode()
        assert run.end() == 7


@pytest.mark.parametrize("name", PASSED)
def test_a_signal_sent_to_us_alone_reaches_the_client_once(tmp_path: Path, name: str) -> None:
    with wrapped(tmp_path, sys.executable, "-c", COUNTS, *PASSED) as run:
        assert run.read_line().startswith(b"ready")
        run.signal(getattr(signal, f"SIG{name}"))
        assert run.read_line() == f"got SIG{name}\n".encode()
        run.send(b"end\n")
        assert run.read_all() == b"read end\n"
        assert run.wait() == 4


def test_the_client_has_the_signals_as_we_were_given_them(tmp_path: Path) -> None:
    script = (
        "import signal as s; by_python = (s.SIGPIPE, s.SIGXFSZ)\n"
        "print([n.name for n in s.valid_signals() if s.getsignal(n) == s.SIG_IGN and n not in by_python],"
        " s.pthread_sigmask(0, []))"
    )

    def ignoring() -> None:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2})

    with Wrapped(tmp_path, [sys.executable, "-c", script], program=FAKE, preexec=ignoring) as run:
        assert run.read_line().decode() == f"['SIGHUP'] {{{signal.SIGUSR2!r}}}\n"
        assert run.end() == 0


def test_a_client_that_somebody_stopped_is_continued_through_us(tmp_path: Path) -> None:
    """Here nobody could continue our group, so we are not stopped; on a terminal, see below, we are."""
    with wrapped(tmp_path, sys.executable, "-c", COUNTS, "CONT") as run:
        client = int(run.read_line().split()[1])
        os.kill(client, signal.SIGSTOP)
        assert wait_for(lambda: state(client) == "T")
        run.signal(signal.SIGCONT)
        assert run.read_line() == b"got SIGCONT\n"
        run.send(b"end\n")
        assert run.read_line() == b"read end\n"
        assert run.wait() == 4


# -- on a terminal ---------------------------------------------------------------------------------------------------


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[OnTerminal]:
    """A shell with one job, all of it on a terminal: `mcpsniff run` of a client that counts its signals."""
    words = [*FAKE, "--dir", str(tmp_path / "c"), "--no-transcript"]
    client = [sys.executable, "-c", COUNTS, "INT", "WINCH", "CONT"]
    one = OnTerminal([sys.executable, "-c", SHELL, "", *words, "--", *client], all_of_it=True)
    yield one
    one.close()


def test_what_is_typed_reaches_the_client_once(terminal: OnTerminal) -> None:
    assert terminal.sees(b"ready", terminal.screen)
    terminal.type(b"\x03")
    assert terminal.sees(b"got SIGINT\r\n", terminal.screen)
    terminal.type(b"hello\n")
    assert terminal.sees(b"read hello\r\n", terminal.screen)
    assert b"got" not in terminal._said[terminal.screen]
    terminal.type(b"end\n")
    assert terminal.sees(b"nothing is recorded", terminal.screen)
    assert terminal.process.wait(60) == 4


def test_a_changed_window_is_told_once(terminal: OnTerminal) -> None:
    import fcntl
    import struct
    import termios

    assert terminal.sees(b"ready", terminal.screen)
    fcntl.ioctl(terminal.screen, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 99, 0, 0))
    assert terminal.sees(b"got SIGWINCH\r\n", terminal.screen)
    terminal.type(b"end\n")
    assert terminal.sees(b"read end\r\n", terminal.screen)
    assert b"got" not in terminal._said[terminal.screen]


def test_ctrl_z_stops_the_job_and_the_shell_continues_it(terminal: OnTerminal) -> None:
    assert terminal.sees(b"ready ", terminal.screen)
    for _ in range(3):
        terminal.type(b"\x1a")
        assert terminal.sees(b"stopped\r\n", terminal.screen)
        os.write(terminal.command, b"x")
        assert terminal.sees(b"got SIGCONT\r\n", terminal.screen)
        terminal.type(b"again\n")
        assert terminal.sees(b"read again\r\n", terminal.screen)
        assert b"stopped" not in terminal._said[terminal.screen]
    terminal.type(b"end\n")
    assert terminal.process.wait(60) == 4


def test_a_client_that_does_not_stop_at_ctrl_z_goes_on(tmp_path: Path) -> None:
    words = [*FAKE, "--dir", str(tmp_path / "c"), "--no-transcript", "--", sys.executable, "-c", COUNTS, "TSTP"]
    one = OnTerminal([sys.executable, "-c", SHELL, "", *words], all_of_it=True)
    try:
        assert one.sees(b"ready", one.screen)
        one.type(b"\x1a")
        assert one.sees(b"got SIGTSTP\r\n", one.screen)
        one.type(b"end\n")
        assert one.sees(b"read end\r\n", one.screen)
        assert one.process.wait(60) == 4
    finally:
        one.close()


def test_a_kill_of_ours_leaves_the_client_alone(tmp_path: Path) -> None:
    """It is the user's program, and may have something to save. Only its proxy is gone."""
    note = tmp_path / "pid"
    command = ["sh", "-c", f"echo $$ > {note}; read x; exit 0"]
    with Wrapped(tmp_path, command, program=FAKE, env=environment(TMPDIR=str(tmp_path))) as run:
        client = read_number(note)
        run.signal(signal.SIGKILL)
        assert run.process.wait(PATIENCE) == -signal.SIGKILL  # the client has our stderr still
        assert is_running(client)
        run.send(b"x\n")
        assert wait_for(lambda: not is_running(client))


def test_a_signal_before_the_client_is_there_starts_none(tmp_path: Path) -> None:
    script = (
        "import os, signal, sys; from tests.mitm import fake_run; from mcpsniff.proxy.client import launch;"
        "from mcpsniff.cli.options import RUN, parse\n"
        "class Slow(fake_run.Session):\n"
        "    def start(self):\n"
        "        os.kill(os.getpid(), signal.SIGTERM)\n"
        "        return super().start()\n"
        "options, words = parse(RUN, sys.argv[1:])\n"
        "sys.exit(launch(words, options, Slow))"
    )
    mark = tmp_path / "mark"
    with Wrapped(
        tmp_path, ["touch", str(mark)], program=(sys.executable, "-c", script), env=environment(TMPDIR=str(tmp_path))
    ) as run:
        assert run.end() == 143
    assert not mark.exists()
    assert [each for each in os.listdir(tmp_path) if each.startswith("mcpsniff-run")] == []
