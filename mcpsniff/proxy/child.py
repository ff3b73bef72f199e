"""The wrapped server's process: started as if nobody stood in between, signalled as a group."""

import errno
import os
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Final

NOT_EXECUTABLE: "Final" = 126
NOT_FOUND: "Final" = 127
"""What a shell exits with."""
PIPE_SIZE: "Final" = 256 << 10
"""Bytes that the server's stdout holds; four times the usual."""

_COERCED: "Final" = frozenset({"C.UTF-8", "C.utf8", "UTF-8"})
_RESTORED: "Final" = (signal.SIGPIPE, signal.SIGXFSZ)
"""Signals that Python ignores; an ignored signal would stay ignored in the server."""


class StartError(Exception):
    """The command cannot be started; the text says why in one sentence."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status
        """The exit status to end with."""


class Child:
    """A server process with its three standard streams on pipes, leader of a process group of its own."""

    def __init__(self, command: "Sequence[str]") -> None:
        """Start ``command``, found on PATH, with our environment, folder and inheritable descriptors.

        Raises StartError.
        """
        pipes = [os.pipe() for _ in range(3)]
        theirs = [pipes[0][0], pipes[1][1], pipes[2][1]]
        try:
            self.pid = os.posix_spawnp(
                command[0],
                list(command),
                inherited_environment(),
                file_actions=[(os.POSIX_SPAWN_DUP2, end, number) for number, end in enumerate(theirs)],
                setpgroup=0,
                setsigdef=_RESTORED,
            )
        except (OSError, ValueError) as error:
            for pipe in pipes:
                os.close(pipe[0])
                os.close(pipe[1])
            raise _start_error(command[0], error) from None
        # We must be the only holder of our ends, and of theirs nobody but the server: ends of streams depend on it.
        for end in theirs:
            os.close(end)
        self.stdin, self.stdout, self.stderr = pipes[0][1], pipes[1][0], pipes[2][0]
        _widen(self.stdout)
        self.status: int | None = None
        """What `os.waitpid` said; None while the process runs."""

    def poll(self) -> bool:
        """Say whether the process has ended, and reap it."""
        if self.status is None:
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:  # reaped by nobody we know; its status is lost
                pid, status = self.pid, 0
            if pid:
                self.status = status
        return self.status is not None

    def signal(self, number: int) -> bool:
        """Send a signal to the whole process group, and say whether anybody was left to receive it."""
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            return False
        except PermissionError:  # macOS says so of a group of zombies; on Linux some member has another user
            return self.status is None
        return True

    def exit_status(self) -> int:
        """Return what a shell would report: the exit status, or 128 + N after signal N."""
        status = self.status or 0
        return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.waitstatus_to_exitcode(status)


def inherited_environment() -> "dict[str, str]":
    """Return the environment as we were given it.

    In the C locale Python sets LC_CTYPE for itself and its children (PEP 538); the server is not to see that.
    """
    environment = dict(os.environ)
    if environment.get("LC_CTYPE") in _COERCED and not environment.get("LC_ALL"):
        given = _given_ctype(environment["LC_CTYPE"])
        if given is None:
            del environment["LC_CTYPE"]
        else:
            environment["LC_CTYPE"] = given
    return environment


def _given_ctype(now: str) -> "str | None":
    """Return LC_CTYPE as it was when this process began; ``now`` is what it is, perhaps by Python's doing."""
    try:
        with open("/proc/self/environ", "rb") as file:
            lines = file.read().split(b"\0")
    except OSError:  # macOS: the mode that goes with the coercion gives it away, where it is not the default (3.15)
        by_python = sys.flags.utf8_mode and "PYTHONUTF8" not in os.environ and sys.version_info < (3, 15)
        return None if by_python else now
    found = [line[len(b"LC_CTYPE=") :] for line in lines if line.startswith(b"LC_CTYPE=")]
    return os.fsdecode(found[0]) if found else None


def _widen(pipe: int) -> None:
    """Let a server that says much write on while its last words are passed on (Linux; elsewhere pipes grow)."""
    import fcntl

    try:
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE_SIZE)
    except (AttributeError, OSError):  # no such call; or the user's allowance of pipe memory is used up
        return


def inheritable_descriptors() -> "list[int]":
    """Return the descriptors beyond the standard three that our parent meant the server to have."""
    found: list[int] = []
    try:
        names = os.listdir("/dev/fd")
    except OSError:  # a bare chroot
        return found
    for descriptor in map(int, names):
        try:
            if descriptor > 2 and os.get_inheritable(descriptor):
                found.append(descriptor)
        except OSError:  # the listing's own
            continue
    return found


def _start_error(name: str, error: "OSError | ValueError") -> StartError:
    """Put a failed start into words."""
    number = error.errno if isinstance(error, OSError) else None
    if number == errno.ENOENT and "/" not in name:
        path = os.environ.get("PATH", os.defpath)
        return StartError(f"command not found: {name} (PATH searched: {path})", NOT_FOUND)
    if number in {errno.ENOENT, errno.ENOTDIR}:
        return StartError(f"command not found: {name}", NOT_FOUND)
    why = (isinstance(error, OSError) and error.strerror) or str(error)
    where = "" if "/" in name else f" (PATH searched: {os.environ.get('PATH', os.defpath)})"
    return StartError(f"cannot execute {name}: {why}{where}", NOT_EXECUTABLE)
