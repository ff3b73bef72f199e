"""Flow control, signals, ends and leftovers of a wrapped server: the reported faults of process life (class B)."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.proxy.wrapped import PATIENCE, STDIO, Wrapped, environment, is_gone, is_running, read_number, wait_for

PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
STUBBORN = "trap '' TERM INT HUP; while :; do sleep 0.1; done"
"""A shell that ignores the end of its input and every polite signal, as do the processes that it starts."""


def python(script: str) -> list[str]:
    return [sys.executable, "-c", script]


def test_b18_a_flood_on_stderr_does_not_block_the_answer(tmp_path: Path) -> None:
    script = "import os\nfor _ in range(32): os.write(2, b'e' * 65536)\nos.write(1, os.read(0, 65536))"
    with Wrapped(tmp_path, python(script), "--quiet") as wrapped:
        wrapped.send(PING)
        assert wrapped.read_line() == PING
        assert wrapped.end() == 0
    assert wrapped.stderr == b"e" * (2 << 20)
    assert wrapped.capture().data(2) == b"e" * (2 << 20)


def test_b20_a_full_pipe_one_way_does_not_stop_the_other(tmp_path: Path) -> None:
    """The server buffers in a thread of its own, as it would have to without us between the two."""
    script = """
import os, queue, threading
waiting = queue.SimpleQueue()
def echo():
    while data := waiting.get():
        while data:
            data = data[os.write(1, data):]
thread = threading.Thread(target=echo)
thread.start()
while True:
    data = os.read(0, 65536)
    waiting.put(data)
    if not data:
        break
thread.join()
"""
    frame = b'{"jsonrpc":"2.0","id":1,"method":"' + b"x" * (8 << 20) + b'"}\n'
    with Wrapped(tmp_path, python(script)) as wrapped:
        wrapped.send(frame)
        size = int(subprocess.check_output(["ps", "-o", "rss=", "-p", str(wrapped.process.pid)]))
        wrapped.stdin.close()
        assert wrapped.read_all() == frame
        assert wrapped.wait() == 0
    assert size < 64 << 10
    assert wrapped.capture().data(0) == frame


def test_b22_answers_after_the_end_of_stdin_arrive(tmp_path: Path) -> None:
    script = """
import sys, time
for line in sys.stdin:
    time.sleep(0.5)
    print(line.replace("method", "result"), end="", flush=True)
"""
    second = PING.replace(b"1,", b"2,")
    with Wrapped(tmp_path, python(script)) as wrapped:
        wrapped.send(PING + second)
        wrapped.stdin.close()
        answers = (PING + second).replace(b"method", b"result")
        assert wrapped.read_all() == answers
        assert wrapped.wait() == 0
    capture = wrapped.capture()
    assert (capture.data(0), capture.data(1)) == (PING + second, answers)
    assert capture.bodies("close", 0) == [{"how": "eof"}]
    assert capture.bodies("close", 1) == [{"how": "exit", "status": 0}]


def test_b24_a_server_that_ignores_everything_is_killed_in_order(tmp_path: Path) -> None:
    with Wrapped(tmp_path, ["sh", "-c", "echo $$; " + STUBBORN], "--grace", "0.3") as wrapped:
        server = int(wrapped.read_line())
        assert wrapped.end() == 137
        assert is_gone(server)
    capture = wrapped.capture()
    (end,) = capture.bodies("close", 1)
    assert end == {"how": "killed", "signal": 9, "sent": ["TERM", "KILL"], "by": "mcpsniff"}


def test_b24_a_server_that_heeds_term_is_not_killed(tmp_path: Path) -> None:
    with Wrapped(tmp_path, ["sh", "-c", "echo up; exec sleep 60"], "--grace", "0.2") as wrapped:
        wrapped.read_line()
        assert wrapped.end() == 143
    (end,) = wrapped.capture().bodies("close", 1)
    assert end == {"how": "killed", "signal": 15, "sent": ["TERM"], "by": "mcpsniff"}


def test_b25_a_killed_wrapper_leaves_nothing(tmp_path: Path) -> None:
    with Wrapped(tmp_path, ["sh", "-c", "echo $$; exec cat"]) as wrapped:
        server = int(wrapped.read_line())
        wrapped.send(PING)
        assert wrapped.read_line() == PING
        wrapped.recorded(lambda capture: capture.data(1).endswith(PING))
        wrapped.signal(signal.SIGKILL)
        assert wait_for(lambda: is_gone(server))
    assert wrapped.capture().data(0) == PING
    assert wrapped.capture().damaged == 0


def test_a_killed_group_leaves_neither_shell_nor_grandchild(tmp_path: Path) -> None:
    """Both ignore TERM and the end of their input, and the KILL hits the wrapper's whole process group."""
    pidfile = tmp_path / "pids"
    script = (
        f"({STUBBORN}) & echo $! >> {pidfile}.new; echo $$ >> {pidfile}.new; mv {pidfile}.new {pidfile}; {STUBBORN}"
    )
    with Wrapped(tmp_path, ["sh", "-c", script]) as wrapped:
        assert wait_for(pidfile.exists)
        pids = [int(line) for line in pidfile.read_text().split()]
        assert all(map(is_running, pids))
        listing = ["ps", "-A", "-ww", "-o", "args="]
        assert wait_for(lambda: f"mcpsniff-guardian {pids[1]}" in subprocess.check_output(listing, text=True))
        time.sleep(0.2)  # until it has read its script
        os.killpg(wrapped.process.pid, signal.SIGKILL)
        assert wait_for(lambda: all(map(is_gone, pids)))


@pytest.mark.parametrize("way", ["eof", "term"])
def test_b26_no_descendant_is_left(tmp_path: Path, way: str) -> None:
    pidfile = tmp_path / "pid"
    script = f"sleep 60 & echo $! > {pidfile}; echo up; wait"
    with Wrapped(tmp_path, ["sh", "-c", script], "--grace", "0.2") as wrapped:
        wrapped.read_line()
        grandchild = read_number(pidfile)
        if way == "term":
            wrapped.signal(signal.SIGTERM)
        assert wrapped.end() == 143
        assert wait_for(lambda: is_gone(grandchild))


def test_b26_the_group_is_ended_even_when_its_leader_has_left(tmp_path: Path) -> None:
    """The grandchild ignores TERM and holds the server's streams; it is killed after we have gone."""
    pidfile = tmp_path / "pid"
    script = f"({STUBBORN}) & echo $! > {pidfile}; echo last; exit 5"
    with Wrapped(tmp_path, ["sh", "-c", script]) as wrapped:
        assert wrapped.read_line() == b"last\n"
        assert wrapped.wait() == 5
        assert wait_for(lambda: is_gone(read_number(pidfile)))
    capture = wrapped.capture()
    assert capture.bodies("close", 1) == [{"how": "exit", "status": 5}]
    assert capture.bodies("close", 2) == [{"how": "aborted", "error": "held open by another process"}]
    assert capture.bodies("close", 0) == [{"how": "aborted", "error": "the server ended"}]


def test_b28_the_exit_status_is_the_servers(tmp_path: Path) -> None:
    with Wrapped(tmp_path, ["sh", "-c", "echo '{}'; exit 7"]) as wrapped:
        assert wrapped.read_all() == b"{}\n"
        assert wrapped.wait() == 7
    assert wrapped.capture().bodies("close", 1) == [{"how": "exit", "status": 7}]


def test_b28_a_server_killed_by_a_signal(tmp_path: Path) -> None:
    with Wrapped(tmp_path, ["sh", "-c", "kill -9 $$"]) as wrapped:
        assert wrapped.wait() == 137
    assert wrapped.capture().bodies("close", 1) == [{"how": "killed", "signal": 9}]


def test_b29_a_command_that_does_not_exist(tmp_path: Path) -> None:
    with Wrapped(tmp_path, ["no-such-server-binary", "--x"], env=environment(PATH="/nowhere:/nor/here")) as wrapped:
        assert wrapped.read_all() == b""
        assert wrapped.wait() == 127
    (line,) = wrapped.stderr.decode().splitlines()
    assert "no-such-server-binary" in line
    assert "/nowhere:/nor/here" in line
    (end,) = wrapped.capture().bodies("close", 1)
    assert (end["how"], end["status"]) == ("error", 127)
    assert "no-such-server-binary" in end["error"]


def test_b29_a_file_that_is_not_executable(tmp_path: Path) -> None:
    server = tmp_path / "server"
    server.write_text("#!/bin/sh\n")
    with Wrapped(tmp_path, [str(server)]) as wrapped:
        assert wrapped.read_all() == b""
        assert wrapped.wait() == 126
    assert str(server) in wrapped.stderr.decode()
    assert wrapped.capture().bodies("close", 1)[0]["status"] == 126


@pytest.mark.parametrize("locale", [{}, {"LC_CTYPE": "C"}, {"LC_CTYPE": "C.UTF-8"}, {"LC_ALL": "C"}])
def test_b31_environment_and_folder_are_kept(tmp_path: Path, locale: dict[str, str]) -> None:
    """Without a locale Python changes LC_CTYPE for itself; the server must not see that."""
    inherited = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "PYTHONPATH": environment()["PYTHONPATH"]}
    env = {**inherited, "ODD": "\udcff\n=", **locale}
    command = ["sh", "-c", "pwd; env | sort"]
    direct = subprocess.run(command, env=env, capture_output=True).stdout
    with Wrapped(tmp_path, command, env=env) as wrapped:
        assert wrapped.read_all() == direct
        assert wrapped.wait() == 0


def test_b33_a_client_that_stopped_reading(tmp_path: Path) -> None:
    script = """
import os, signal, time
signal.signal(signal.SIGPIPE, signal.SIG_IGN)
for n in range(3000):
    try:
        os.write(1, b'{"jsonrpc":"2.0","method":"notifications/n"}\\n')
    except OSError:
        os._exit(9)
    time.sleep(0.01)
"""
    with Wrapped(tmp_path, python(script), "--grace", "5") as wrapped:
        wrapped.read_line()
        wrapped.stdout.close()
        _, status, usage = os.wait4(wrapped.process.pid, 0)
        wrapped.process.returncode = os.waitstatus_to_exitcode(status)
    assert wrapped.process.returncode == 9
    assert usage.ru_utime + usage.ru_stime < 1.0
    assert b"Traceback" not in wrapped.stderr
    capture = wrapped.capture()
    gone = {"how": "aborted", "error": "the client closed its end"}
    assert capture.bodies("close", 0) == [gone]
    assert capture.bodies("close", 1) == [gone, {"how": "exit", "status": 9}]


def test_b33_a_server_that_does_not_notice_is_ended(tmp_path: Path) -> None:
    with Wrapped(
        tmp_path, ["sh", "-c", f"trap '' PIPE; echo a; read x; echo b; {STUBBORN}"], "--grace", "0.2"
    ) as wrapped:
        wrapped.read_line()
        wrapped.stdout.close()
        wrapped.send(b"go\n")
        assert wrapped.wait() == 137
    assert wrapped.capture().bodies("close", 1)[1]["sent"] == ["TERM", "KILL"]


def test_a_server_that_closes_stdout_and_lives_on(tmp_path: Path) -> None:
    with Wrapped(tmp_path, ["sh", "-c", "echo last; exec >&-; read x; exit 3"]) as wrapped:
        assert wrapped.read_all() == b"last\n"
        assert wrapped.process.poll() is None
        wrapped.recorded(lambda capture: capture.bodies("close", 1))
        wrapped.send(b"go\n")
        assert wrapped.wait() == 3
    assert wrapped.capture().bodies("close", 1) == [{"how": "eof"}, {"how": "exit", "status": 3}]


def test_a_server_that_closes_stdin_breaks_the_clients_pipe(tmp_path: Path) -> None:
    with Wrapped(tmp_path, ["sh", "-c", "exec <&-; echo up; exec sleep 60"], "--grace", "60") as wrapped:
        wrapped.read_line()

        def refused() -> bool:
            try:
                wrapped.send(PING)
            except BrokenPipeError:
                return True
            return False

        assert wait_for(refused)
        wrapped.signal(signal.SIGTERM)
        assert wrapped.wait() == 143
    capture = wrapped.capture()
    assert capture.bodies("close", 0) == [{"how": "aborted", "error": "the server closed its end"}]
    assert capture.bodies("close", 1) == [{"how": "killed", "signal": 15, "sent": ["TERM"], "by": "client"}]


@pytest.mark.parametrize("name", ["TERM", "INT", "HUP", "QUIT", "USR1", "USR2"])
def test_signals_reach_the_server(tmp_path: Path, name: str) -> None:
    script = f"trap 'echo got {name}; exit 4' {name}; echo up; while :; do sleep 0.05; done"
    with Wrapped(tmp_path, ["sh", "-c", script]) as wrapped:
        assert wrapped.read_line() == b"up\n"
        wrapped.signal(signal.Signals[f"SIG{name}"])
        assert wrapped.read_all() == f"got {name}\n".encode()
        assert wrapped.wait() == 4
    assert wrapped.capture().bodies("close", 1) == [{"how": "exit", "status": 4, "sent": [name], "by": "client"}]


def test_a_signal_without_effect_is_followed_by_kill(tmp_path: Path) -> None:
    with Wrapped(tmp_path, ["sh", "-c", "echo up; " + STUBBORN], "--grace", "0.2") as wrapped:
        wrapped.read_line()
        wrapped.signal(signal.SIGTERM)
        assert wrapped.wait() == 137
    (end,) = wrapped.capture().bodies("close", 1)
    assert (end["sent"], end["by"]) == (["TERM", "KILL"], "mcpsniff")


def test_a_slow_client_gets_everything_of_a_server_that_has_ended(tmp_path: Path) -> None:
    words = b"x" * 150_000
    with Wrapped(tmp_path, python(f"import os; os.write(1, b'x' * {len(words)})")) as wrapped:
        time.sleep(0.7)  # the server has ended; the pipes are full
        assert wrapped.read_all() == words
        assert wrapped.wait() == 0
    assert wrapped.capture().data(1) == words


def test_a_client_that_reads_nothing_can_still_end_us(tmp_path: Path) -> None:
    with Wrapped(tmp_path, python("import os; os.write(1, b'x' * 150_000)"), "--grace", "60") as wrapped:
        wrapped.recorded(lambda capture: len(capture.data(1)) >= 131072)
        time.sleep(0.2)
        wrapped.signal(signal.SIGTERM)
        assert wrapped.wait() == 0


def test_last_words_on_stderr_are_not_waited_for_without_end(tmp_path: Path) -> None:
    """Many clients give a server a pipe for stderr and never read it."""
    unread, ours = os.pipe()
    script = "import os; os.set_blocking(2, False); os.write(2, b'e' * 65536); os.write(1, b'bye\\n')"
    words = [*STDIO, "--quiet", "--no-transcript", "--dir", str(tmp_path), "--"]
    filler = subprocess.run(python("import os; os.set_blocking(2, False); os.write(2, b'-' * 65536)"), stderr=ours)
    assert filler.returncode == 0
    done = subprocess.run(
        [*words, *python(script)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=ours,
        timeout=PATIENCE,
        env=environment(),
    )
    os.close(ours)
    os.close(unread)
    assert (done.returncode, done.stdout) == (0, b"bye\n")
    records = [json.loads(line) for line in next(tmp_path.glob("*.mcpcap")).read_bytes().splitlines()[1:]]
    assert [body for _, kind, channel, body in records if (kind, channel) == ("close", 2)] == [
        {"how": "aborted", "error": "not read by the client"}
    ]


def test_signals_that_were_ignored_stay_ignored(tmp_path: Path) -> None:
    """As under nohup: neither the wrapper nor the server ends at a HUP."""
    with Wrapped(
        tmp_path,
        ["sh", "-c", "echo up; read x; kill -HUP $$; echo alive"],
        preexec=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN) and None,
    ) as wrapped:
        wrapped.read_line()
        wrapped.signal(signal.SIGHUP)
        wrapped.send(b"go\n")
        assert wrapped.read_line() == b"alive\n"
        assert wrapped.end() == 0


def test_descriptors_given_to_the_server_reach_it_and_it_alone(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    words = [*STDIO, "--quiet", "--no-transcript", "--dir", str(tmp_path), "--"]
    process = subprocess.Popen(
        [*words, *python(f"import os; os.write({writing}, b'through\\n'); os.close({writing}); os.read(0, 1)")],
        stdin=subprocess.PIPE,
        pass_fds=[writing],
        env=environment(),
    )
    os.close(writing)
    assert os.read(reading, 100) == b"through\n"
    assert os.read(reading, 100) == b""  # while the session goes on: nobody else holds it
    assert process.poll() is None
    process.communicate(timeout=PATIENCE)
    os.close(reading)
    assert process.returncode == 0


@pytest.mark.parametrize("closed", [0, 1, 2])
def test_a_missing_standard_stream_upsets_nothing(tmp_path: Path, closed: int) -> None:
    words = [*STDIO, "--no-transcript", "--dir", str(tmp_path), "--"]
    done = subprocess.run(
        [*words, "sh", "-c", "cat; echo out; echo err >&2; exit 6"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        preexec_fn=lambda: os.close(closed),
        env=environment(),
        timeout=PATIENCE,
    )
    assert done.returncode == 6
    if closed != 1:
        assert done.stdout == b"out\n"
    if closed != 2:
        assert b"err\n" in done.stderr


@pytest.mark.parametrize("server_first", [False, True])
def test_the_order_of_the_two_ends_is_kept(tmp_path: Path, server_first: bool) -> None:
    """Who left first is what tells a server that died from a client that was done."""
    command = ["sh", "-c", "exec >&-; read x; exit 3"] if server_first else ["cat"]
    with Wrapped(tmp_path, command) as wrapped:
        if server_first:
            assert wrapped.read_all() == b""
        wrapped.stdin.close()
        assert wrapped.wait() == (3 if server_first else 0)
    closes = [record[2] for record in wrapped.capture().records if record[1] == "close" and record[2] != 2]
    assert closes == ([1, 0, 1] if server_first else [0, 1])
