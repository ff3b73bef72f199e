"""The live view of `mcpsniff http`, a process of its own: it shows captures that are given by path, while they grow.

It is started by `mcpsniff.proxy.liveview`, ends when its standard input does, and is nice to the process on the wire.
With ``--desk SOCKET`` in front of the paths the user decides at its foot about what is held at break points.
"""

import os
import select
import signal
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from mcpsniff.capture.follower import CaptureLost
from mcpsniff.cli.output import note
from mcpsniff.cli.screen import Screen
from mcpsniff.cli.tail import Tail, Views
from mcpsniff.errors import CaptureError

if TYPE_CHECKING:
    from mcpsniff.cli.attach_screen import Attached

NICENESS: Final = 19
NICENESS_TO_USER: Final = 5


class Given:
    """These captures, until standard input ends."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = list(paths)
        self._poll = select.poll()
        self._poll.register(sys.stdin.fileno(), select.POLLIN)

    @property
    def is_over(self) -> bool:
        """True when nothing more will be recorded."""
        return bool(self._poll.poll(0))

    def look(self) -> list[str]:
        """Return those that have begun: a file is there from the first moment, its first line with its first record."""
        began, self._paths = self._paths, []
        return began

    def ended(self) -> None:
        """Others go on."""

    def lost(self, path: str, error: CaptureLost) -> None:  # noqa: ARG002
        """Go on with the others."""
        note(str(error))

    def failed(self, path: str, error: CaptureError) -> None:  # noqa: ARG002
        """Go on with the others."""
        note(f"passed over: {error}")


def main(paths: Sequence[str]) -> int:
    """Show them until the end; return the exit status."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the recorder, and we show what it still records
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        if paths[:1] == ["--desk"]:
            _show_with_prompt(paths[1], paths[2:])
        else:
            os.nice(NICENESS)
            _show(Screen(), paths)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        note(f"the live view ends: {error.strerror or error}")
        return 3
    except Exception as error:
        if os.environ.get("MCPSNIFF_DEBUG"):
            raise
        bug = "this is a bug in mcpsniff, please report it"
        note(f"the live view ends; {bug}: {type(error).__name__}: {error} (MCPSNIFF_DEBUG=1 shows where)")
        return 70
    return 0


def _show(screen: Screen, paths: Sequence[str], attached: "Attached | None" = None) -> None:
    """Show them until the end, with a prompt as long as there is one."""
    views = Views(screen, "text", None, "start", None, alone=False, together=len(paths) > 1)
    tail = Tail(screen, Given(paths), views, time.sleep if attached is None else attached.wait)
    if attached is None:
        tail.run()
    else:
        with attached:
            tail.run()
    tail.finish()
    screen.flush()


def _show_with_prompt(desk: str, paths: Sequence[str]) -> None:
    """Show them, and at the foot what is held at the desk behind that socket."""
    from mcpsniff.cli.attach_screen import DeskScreen, beside

    os.nice(NICENESS_TO_USER)  # the user's editor inherits it
    screen = DeskScreen()
    signal.signal(signal.SIGINT, lambda _number, _frame: None)  # nor may the editor begin with Ctrl-C ignored
    _show(screen, paths, beside(screen, desk))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
