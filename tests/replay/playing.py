"""`mcpsniff play` as a process on a terminal, and a small shell with job control around it."""

import os
import pty
import select
import signal
import subprocess
import sys
import termios
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from tests.cli.ready import ready
from tests.cli.running import COMMAND, REPO, environment
from tests.tail.emulator import Terminal
from tests.tail.growing import PATIENCE, Tail

SHELL = """
import fcntl, os, signal, sys, termios
told, orders, given, *command = sys.argv[1:]
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
child = os.fork()
if not child:
    os.setpgid(0, 0)
    os.tcsetpgrp(0, os.getpid())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    if given:
        os.dup2(os.open(given, os.O_RDONLY), 0)
    os.execv(command[0], command)
os.write(int(told), f"{child}\\n".encode())
while True:
    _, status = os.waitpid(child, os.WUNTRACED)
    os.tcsetpgrp(0, os.getpgrp())
    stopped = os.WIFSTOPPED(status)
    os.write(int(told), b"stopped\\n" if stopped else f"{os.waitstatus_to_exitcode(status)}\\n".encode())
    if not stopped:
        break
    os.read(int(orders), 1)
    os.tcsetpgrp(0, child)
    os.killpg(child, signal.SIGCONT)
"""
PENDIN = 0x20000000 if sys.platform == "darwin" else 0
"""Which macOS sets by itself when lines are read again."""


class Playing(Tail):
    """`mcpsniff play` on a terminal (or on pipes, without ``columns``), to be used as `tests.tail.growing.Tail` is."""

    def __init__(self, *words: str, columns: int = 100, **env: str) -> None:
        self.out, self.err = b"", b""
        self._master, self.terminal = pty.openpty()
        self._ours = {self._master: "out"}
        self._opened = [self._master, self.terminal]
        self.resize(columns)
        self.before = termios.tcgetattr(self.terminal)
        self._start(words, env)

    def _start(self, words: tuple[str, ...], env: dict[str, str]) -> None:
        self.process: Any = ready().start(["play", *words], [self.terminal] * 3, environment(**env), None)

    def press(self, keys: bytes) -> None:
        os.write(self._master, keys)

    def end(self) -> int:
        """Read to the end; return the exit status. We hold the terminal, so that it does not end by itself."""
        while self.process.poll() is None:
            self._read(0.05)
        while self._read(0.05):
            pass
        return int(self.process.wait(PATIENCE))

    @property
    def shown(self) -> Terminal:
        return Terminal(1000).feed(self.out.decode().replace("\r\n", "\n\r"))

    @property
    def is_as_before(self) -> bool:
        now, before = [*termios.tcgetattr(self.terminal)], [*self.before]
        now[3], before[3] = now[3] & ~PENDIN, before[3] & ~PENDIN
        return now == before

    @property
    def has_keys(self) -> bool:
        return not termios.tcgetattr(self.terminal)[3] & (termios.ICANON | termios.ECHO)


class Job(Playing):
    """`mcpsniff play` as the foreground job of a shell; ``given`` is a file for its standard input."""

    def __init__(self, *words: str, given: Path | None = None, columns: int = 100) -> None:
        self._given = given
        super().__init__(*words, columns=columns)

    def _start(self, words: tuple[str, ...], env: dict[str, str]) -> None:
        (self._told, told), (orders, self._orders) = os.pipe(), os.pipe()
        self._opened += [self._told, self._orders]
        shell = [sys.executable, "-c", SHELL, str(told), str(orders), str(self._given or "")]
        self.process = subprocess.Popen(
            [*shell, *COMMAND, "play", *words],
            stdin=self.terminal,
            stdout=self.terminal,
            stderr=self.terminal,
            pass_fds=(told, orders),
            start_new_session=True,
            env=environment(**env),
            cwd=REPO,
        )
        os.close(told)
        os.close(orders)
        self._job = int(self.told())

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            with suppress(ProcessLookupError):
                self.signal(signal.SIGKILL)
            self.process.kill()
        super().__exit__(None, None, None)

    def __enter__(self) -> Self:
        return self

    def told(self) -> str:
        """What the shell is told of its job: ``stopped`` or an exit status."""
        said = b""
        while not said.endswith(b"\n"):
            while not select.select([self._told], [], [], 0)[0]:
                self._read(0.02)
            piece = os.read(self._told, 1)
            assert piece, "the shell has ended"
            said += piece
        return said.decode().strip()

    def signal(self, number: int) -> None:
        os.killpg(self._job, number)

    def go_on(self) -> None:
        os.write(self._orders, b"f")
