"""Ctrl-C while mcpsniff itself is still starting: quiet, and status 130, whatever it was doing."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from mcpsniff.cli.interrupts import Remembered
from tests.cli.running import COMMAND, environment

INTERRUPT = """
import os, signal, sys
from mcpsniff.__main__ import main

def interrupt():
    os.kill(os.getpid(), signal.SIGINT)
    for _ in range(100):  # Python looks for signals between its own instructions
        pass
"""
# While the module with this number is looked for.
WHILE_LOADING = """
class Interrupting:
    left = {turn}

    def find_spec(self, name, path=None, target=None):
        self.left -= 1
        if self.left == 0:
            interrupt()

sys.meta_path.insert(0, Interrupting())
"""
# Before the line with this number, as they are run, of `mcpsniff.__main__`.
BETWEEN_LINES = """
left = {turn}

def trace(frame, event, argument):
    global left
    if not frame.f_code.co_filename.endswith("__main__.py"):
        return None
    left -= event == "line"
    if left == 0:
        interrupt()
    return trace

sys.settrace(trace)
"""
RUN = "sys.exit(main({words}))"
COMMANDS = {
    "http": ["http", "http://127.0.0.1:1/", "--quiet"],
    "stdio": ["stdio", "--quiet", "--", "sleep", "60"],
    "list": ["list"],
    "no command": ["--help"],
}
INTERRUPTED = 130


def interrupted(folder: Path, code: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-c", INTERRUPT + code],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=environment(XDG_STATE_HOME=str(folder), HOME=str(folder)),
        timeout=60,
    )


# The first line of all is `try:` itself.
@pytest.mark.parametrize(
    ("how", "turns"),
    [(WHILE_LOADING, (1, 2, 3, 5, 8, 12)), (BETWEEN_LINES, range(2, 8))],
    ids=["while loading", "between lines"],
)
@pytest.mark.parametrize("name", COMMANDS)
def test_ctrl_c_while_starting_is_quiet(tmp_path: Path, name: str, how: str, turns: Sequence[int]) -> None:
    for turn in turns:
        done = interrupted(tmp_path, (how + RUN).format(turn=turn, words=COMMANDS[name]))
        assert (turn, done.returncode, done.stdout, done.stderr) == (turn, INTERRUPTED, b"", b"")


@pytest.mark.parametrize("words", [["list"], ["replay", "x", "--serve", "stdio"]], ids=str)
def test_ctrl_c_where_python_would_die_of_it_or_lose_it_is_quiet_too(tmp_path: Path, words: list[str]) -> None:
    """In text that is run (as that of dataclasses), and where exceptions are ignored (as in callbacks of imports)."""
    callback = "__import__('weakref').finalize(type('X', (), dict())(), interrupt)"
    for where in ("exec('interrupt()')", callback):
        how = WHILE_LOADING.replace("            interrupt()", f"            {where}")
        done = interrupted(tmp_path, (how + RUN).format(turn=20, words=words))
        assert (where, done.returncode, done.stdout, done.stderr) == (where, INTERRUPTED, b"", b"")


def test_where_ctrl_c_is_ignored_relays_say_how_they_end(tmp_path: Path) -> None:
    """A script that starts a command with ``&`` has it ignored (POSIX, XCU 2.11)."""
    home = environment(HOME=str(tmp_path), MCPSNIFF_DIR=str(tmp_path / "captures"))
    children = {}
    for words in (["http", "http://127.0.0.1:1"], ["forward"], ["http", "http://127.0.0.1:1", "--quiet"]):
        command = ["sh", "-c", 'trap "" INT; exec "$@"', "sh", *COMMAND, *words, "--no-transcript"]
        children[" ".join(words)] = subprocess.Popen(
            command, env=home, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
    for name, child in children.items():
        quiet = "--quiet" in name
        stream, last = (child.stdout, b"http://") if quiet else (child.stderr, b"Ctrl-C is ignored here")
        assert stream is not None
        said = b""
        while last not in said:
            piece = os.read(stream.fileno(), 4096)
            assert piece, (name, said)
            said += piece
        child.terminate()
        _, rest = child.communicate(timeout=60)
        assert child.returncode == 0
        text = f"mcpsniff: Ctrl-C is ignored here (started with &): end it with kill {child.pid}\n"
        assert (text in (said + rest).decode()) is not quiet


def test_ctrl_c_that_python_drops_is_remembered() -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with Remembered() as ctrl_c:
            ctrl_c.check()
            with suppress(KeyboardInterrupt):  # as Python does in a destructor
                os.kill(os.getpid(), signal.SIGINT)
            with pytest.raises(KeyboardInterrupt):
                ctrl_c.check()
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
