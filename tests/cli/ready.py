"""Processes of mcpsniff without the time that an interpreter takes to start and to load it.

`python -m tests.cli.ready` loads all of mcpsniff once, and forks a process for each command line that it is sent. Such
a process has its own streams, environment, folder and signals, and ends as an interpreter ends. So it is as good as
`python -m mcpsniff`, where a test is not about that start, or about what Python then reads (see `suits`).
"""

import array
import atexit
import functools
import gc
import importlib
import io
import json
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any

REPO = Path(__file__).resolve().parents[2]
READ_WHEN_PYTHON_STARTS = ("PYTHON", "LC_", "LANG", "TZ")
NUMBER = array.array("i").itemsize


def suits(env: Mapping[str, str]) -> bool:
    """Whether these additions to the environment mean the same to a process that was forked."""
    return not any(name.startswith(READ_WHEN_PYTHON_STARTS) for name in env)


class Child:
    """A process that was asked for, as a `subprocess.Popen`; its streams are with whoever gave them."""

    def __init__(self, told: socket.socket) -> None:
        self._told = told
        self.pid = int.from_bytes(told.recv(4))
        self.returncode: int | None = None

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit status, negative for a signal. Raises subprocess.TimeoutExpired after so many seconds."""
        if self.returncode is None:
            poll = select.poll()  # select.select takes no descriptor beyond 1023
            poll.register(self._told, select.POLLIN)
            if not poll.poll(None if timeout is None else timeout * 1000):
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0)
            self.returncode = os.waitstatus_to_exitcode(int.from_bytes(self._told.recv(4)))
            self._told.close()
        return self.returncode

    def poll(self) -> int | None:
        """Return the exit status if there is one."""
        with suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class Ready:
    """The process that has loaded mcpsniff; it ends with the one that made it."""

    def __init__(self) -> None:
        self._turn = Lock()
        self._ours, theirs = socket.socketpair()
        words = [sys.executable, "-m", "tests.cli.ready"]
        env = {**os.environ, "PYTHONPATH": str(REPO)}
        self._process = subprocess.Popen(
            words, stdin=theirs, stdout=subprocess.DEVNULL, env=env, cwd=REPO, start_new_session=True
        )
        theirs.close()
        atexit.register(self._end)

    def _end(self) -> None:
        self._ours.close()
        self._process.wait(20)

    def start(self, words: Sequence[str], streams: Sequence[int], env: Mapping[str, str], cwd: Path | None) -> Child:
        """Run `mcpsniff` with these words in a session of its own, on copies of these three descriptors."""
        told, telling = socket.socketpair()
        order = {"words": [*words], "env": {**env}, "cwd": str(cwd or Path.cwd())}
        data = json.dumps(order).encode()
        numbers = array.array("i", [*streams, telling.fileno()])
        head = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, numbers)]
        with self._turn:
            self._ours.sendmsg([len(data).to_bytes(4)], head)
            self._ours.sendall(data)
        telling.close()
        return Child(told)


@functools.cache
def ready() -> Ready:
    """The one of this process."""
    return Ready()


def main() -> int:
    """Serve orders; in each process that is forked for one, run it."""
    orders = socket.socket(fileno=os.dup(0))
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.close(null)
    for module in pkgutil.walk_packages(importlib.import_module("mcpsniff").__path__, "mcpsniff."):
        importlib.import_module(module.name)
    gc.freeze()
    while True:
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        head, rights, _, _ = orders.recvmsg(4, socket.CMSG_LEN(4 * NUMBER))
        if not head:
            return 0
        data = b""
        while len(data) < int.from_bytes(head):
            data += orders.recv(int.from_bytes(head) - len(data))
        descriptors = array.array("i", rights[0][2])
        if not os.fork():
            break
        for descriptor in descriptors:
            os.close(descriptor)
    orders.close()
    *streams, telling = descriptors
    child = os.fork()
    if child:
        for descriptor in streams:
            os.close(descriptor)
        os.write(telling, child.to_bytes(4))
        os.write(telling, os.waitpid(child, 0)[1].to_bytes(4))
        os._exit(0)
    os.close(telling)
    return perform(json.loads(data), streams)


def perform(order: dict[str, Any], streams: Sequence[int]) -> int:
    """Be the process that was ordered."""
    os.setsid()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["env"])
    sys.stdin, sys.stdout, sys.stderr = (opened(number) for number in range(3))
    module = importlib.import_module("mcpsniff.__main__")
    sys.argv = [str(module.__file__), *order["words"]]
    status: int = module.main()
    return status


def opened(number: int) -> io.TextIOWrapper:
    """A standard stream, opened as Python does without PYTHONUNBUFFERED."""
    was = (sys.__stdin__, sys.__stdout__, sys.__stderr__)[number]
    assert isinstance(was, io.TextIOWrapper)
    return open(
        number,
        "r" if number == 0 else "w",
        buffering=1 if number == 2 or (os.isatty(number)) else -1,
        encoding=was.encoding,
        errors=was.errors,
        newline="\n" if number else None,
        closefd=False,
    )


if __name__ == "__main__":
    sys.exit(main())
