"""`mcpsniff stdio`: stands between a client and the server it would have started itself.

Five threads: one pump each for stdin, stdout and stderr, one that stores, and the main thread, which sleeps in
`Wakeup.wait` and decides about beginnings and ends (`session.py`): signals, ends of streams, the server's exit,
deadlines.

Nothing here knows MCP, and nothing heavy is imported before the server has been started.
"""

import gc
import os
import signal
import sys

from mcpsniff.courtesy import SWITCH
from mcpsniff.proxy.child import Pipes, StartError, inheritable_descriptors, run_instead
from mcpsniff.proxy.recording import Recording
from mcpsniff.proxy.say import say
from mcpsniff.proxy.session import STDIN, STDOUT, Session
from mcpsniff.proxy.shutdown import ShutdownOrder
from mcpsniff.proxy.wakeup import Wakeup

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Final

    from mcpsniff.proxy.interception import Interception

OPENINGS: "Final" = (
    {"kind": "stdin", "dir": "c2s", "conn": 0},
    {"kind": "stdout", "dir": "s2c", "conn": 0, "of": STDIN},
    {"kind": "stderr", "dir": "s2c", "conn": 0},
)
CANNOT: "Final" = 126
"""The exit status of a shell for a command that is there and cannot be run."""


def wrap(command: "Sequence[str]", options: "Mapping[str, Any]") -> int:
    """Run ``command`` as a wrapped server, and end this process with its exit status.

    ``options`` holds the values of `mcpsniff.cli.options.STDIO`. Returns (126, 127) only if the command cannot be
    started; else the process ends in here, since a thread that waits for the client's stdin cannot be ended. Raises
    UsageError, before anything was begun, for an addon that cannot be loaded, or a rule that is none.
    """
    _occupy_standard_streams()
    foreign = inheritable_descriptors()
    try:
        interception = _interception(options)
    except OSError as error:
        say(f"{error.strerror}: the server is not started, since nobody could edit its messages")
        return CANNOT
    recording = Recording("stdio", command, options)
    for channel, body in enumerate(OPENINGS):
        recording.recorder.mark("open", channel, body)
    try:
        session = _start(command, recording, ShutdownOrder(options["grace"]), interception)
    except StartError as error:
        say(str(error))
        return _failed_start(recording, error)
    status = os.EX_SOFTWARE
    try:
        for descriptor in foreign:  # the server has them now, and decides how long they live
            os.close(descriptor)
        sys.setswitchinterval(SWITCH)
        gc.freeze()
        if interception is None:
            gc.disable()  # nothing here makes cycles, and a collection in the middle of a message is a delay
        status = session.run()
    except Exception as error:  # noqa: BLE001 - a bug of ours; the guardian ends the server
        say(f"internal error: {error!r}")
    finally:
        os._exit(status)


def _interception(options: "Mapping[str, Any]") -> "Interception | None":
    """Load what is to edit or to observe messages, if anything is. Raises UsageError."""
    from mcpsniff.proxy.interception import NAMES, prepare

    if any(options.get(name) for name in NAMES):
        # The streams are the client's: what an addon prints goes to stderr, and there is nothing for it to read.
        sys.stdout = sys.stderr
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115 - for as long as we are there
    return prepare(options, "stdio", say)


def _start(
    command: "Sequence[str]", recording: Recording, order: ShutdownOrder, interception: "Interception | None"
) -> Session:
    """Start the server, or become it where there are no means to stand in between. Raises StartError.

    Where messages are to be edited it is not started without us.
    """
    child_ignored = signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN
    pipes = None
    editing = None
    try:
        if interception is not None:
            from mcpsniff.proxy.relay.pipes_session import Editing

            editing = Editing(interception, recording.recorder)
        pipes = Pipes()
        session = Session(pipes, Wakeup(), recording, order, editing)
        session.start(command, child_ignored=child_ignored)
    except (OSError, ImportError, RuntimeError, MemoryError) as error:  # no descriptors, threads, processes or memory
        if pipes is not None:
            pipes.close()
        why = (isinstance(error, OSError) and error.strerror) or str(error) or "out of memory"
        if editing is not None and editing.holds:
            raise StartError(
                f"{why}: the server is not started, since nobody could edit its messages", CANNOT
            ) from None
        say(f"{why}: the server runs without a wrapper, and nothing is recorded")
        run_instead(command, child_ignored=child_ignored)
    return session


def _failed_start(recording: Recording, error: StartError) -> int:
    """Leave a capture that tells about it, and return the exit status."""
    recording.start(announce=False)
    recording.recorder.mark("close", STDOUT, {"how": "error", "error": str(error), "status": error.status})
    recording.finish()
    return error.status


def _occupy_standard_streams() -> None:
    """Make sure that descriptors 0, 1 and 2 are taken: a pipe of ours must not become the server's stdout by chance."""
    while True:
        descriptor = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        if descriptor > 2:
            os.close(descriptor)
            return
