"""The wrapped server's process: started as if nobody stood in between, signalled as a group."""

import errno
import os
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Final, NoReturn

PIPE_SIZE: "Final" = 256 << 10
"""Bytes that the server's stdout holds; four times the usual."""

_COERCED: "Final" = frozenset({"C.UTF-8", "C.utf8", "UTF-8"})
_RESTORED: "Final" = (signal.SIGPIPE, signal.SIGXFSZ)
"""Signals that Python ignores; an ignored signal would stay ignored in the server.

Whether our parent ignored them too cannot be known any more: Python does it before anything of ours runs. Most parents
do not, and a server that survives a closed pipe would be the greater surprise.
"""
LACK: "Final" = frozenset({errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE})
"""What the system says when it is short of processes, memory or descriptors."""


class StartError(Exception):
    """The command cannot be started; the text says why in one sentence."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status
        """The exit status to end with."""


class Pipes:
    """The three standard streams of a server to be, both ends of each. OSError when there is no room for them."""

    def __init__(self) -> None:
        made: list[tuple[int, int]] = []
        try:
            while len(made) < 3:
                made.append(os.pipe())
        except OSError:
            for pipe in made:
                os.close(pipe[0])
                os.close(pipe[1])
            raise
        self.stdin, self.stdout, self.stderr = made[0][1], made[1][0], made[2][0]
        self.theirs = [made[0][0], made[1][1], made[2][1]]

    def close(self) -> None:
        """Close all ends."""
        for end in (self.stdin, self.stdout, self.stderr, *self.theirs):
            os.close(end)


class Child:
    """A server process with its three standard streams on pipes, leader of a process group of its own."""

    def __init__(self, command: "Sequence[str]", pipes: Pipes, *, child_ignored: bool = False) -> None:
        """Start ``command``, found on PATH, with our environment, folder and inheritable descriptors.

        ``child_ignored`` lets it ignore SIGCHLD, as our parent meant it to. Raises StartError, or OSError where the
        system lacks the means (of these the pipes are left open; they are closed otherwise).
        """
        start = _start_ignoring if child_ignored else _start
        try:
            self.pid = as_a_shell_would(command, lambda words: start(words, pipes.theirs))
        except (OSError, ValueError) as error:
            if isinstance(error, OSError) and error.errno in LACK:
                raise
            pipes.close()
            from mcpsniff.proxy.command import start_error

            raise start_error(command[0], error) from None
        # We must be the only holder of our ends, and of theirs nobody but the server: ends of streams depend on it.
        for end in pipes.theirs:
            os.close(end)
        _widen(pipes.stdout)
        self.status: int | None = None
        """What `os.waitpid` said; None while the process runs."""
        self.stopped_by = 0
        """The signal that stopped it last, until somebody takes note and sets it to 0."""

    def poll(self) -> bool:
        """Say whether the process has ended, and reap it. Whether it has been stopped is in `stopped_by`."""
        while self.status is None:
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG | os.WUNTRACED)
            except ChildProcessError:  # reaped by nobody we know; its status is lost
                pid, status = self.pid, 0
            if not pid:
                break
            if os.WIFSTOPPED(status):
                self.stopped_by = os.WSTOPSIG(status)
            else:
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


def run_instead(command: "Sequence[str]", *, child_ignored: bool = False) -> "NoReturn":
    """Become ``command``: where there are no means for a session, the server runs without anybody in between.

    Raises StartError.
    """
    for number in _RESTORED:
        signal.signal(number, signal.SIG_DFL)
    if child_ignored:
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        as_a_shell_would(command, _become)
    except (OSError, ValueError) as error:
        from mcpsniff.proxy.command import start_error

        raise start_error(command[0], error) from None
    raise AssertionError


def _become(words: "list[str]") -> "NoReturn":
    os.execvpe(words[0], words, inherited_environment())  # noqa: S606


def as_a_shell_would(command: "Sequence[str]", start: "Callable[[list[str]], int]") -> int:
    """Start the command; if the system finds that it is no program (a script without ``#!``), have a shell run it."""
    try:
        return start(list(command))
    except OSError as error:
        if error.errno != errno.ENOEXEC:
            raise
        from mcpsniff.proxy.command import as_script

        script = as_script(command)
        if script is None:
            raise
        return start(script)


def _start(words: "list[str]", streams: "list[int]") -> int:
    """Start a process with these standard streams, in a group of its own, and return its id."""
    return os.posix_spawnp(
        words[0],
        words,
        inherited_environment(),
        file_actions=[(os.POSIX_SPAWN_DUP2, end, number) for number, end in enumerate(streams)],
        setpgroup=0,
        setsigdef=_RESTORED,
    )


def _start_ignoring(words: "list[str]", streams: "list[int]") -> int:
    """Do as `_start`, and have the process ignore SIGCHLD. `os.posix_spawn` cannot do that.

    For us to ignore it meanwhile would have the system throw away the exit status of a server that ends at once.
    """
    import subprocess

    process = subprocess.Popen(
        words,
        stdin=streams[0],
        stdout=streams[1],
        stderr=streams[2],
        env=inherited_environment(),
        process_group=0,
        close_fds=False,
        preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN) and None,  # noqa: PLW1509
    )
    process.returncode = 0  # it is not to be waited for there
    return process.pid


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
    try:
        import fcntl

        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE_SIZE)
    except (
        AttributeError,
        ImportError,
        OSError,
    ):  # no such call; no descriptor to load it; the user's allowance of pipe memory is used up
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
