"""The wrapper's own words. stdout belongs to the server, stderr mostly too: a line here and there, never a wait."""

import os
import select

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_elsewhere: "list[Callable[[str], object]]" = []


def redirect(listener: "Callable[[str], object]") -> None:
    """Let ``listener`` have each line from now on, from any thread: where stderr is another program's screen."""
    _elsewhere[:] = [listener]


def say(text: str) -> None:
    """Write one line on stderr, or some, unless nobody takes it: clients that do not read it are common."""
    if not text.isprintable():
        from mcpsniff.transcript.safe import visible

        text = "\n".join(map(visible, text.split("\n")))
    if _elsewhere:
        _elsewhere[0](text)
        return
    line = f"mcpsniff: {text}\n".encode("utf-8", "backslashreplace")
    poll = select.poll()
    poll.register(2, select.POLLOUT)
    try:
        if poll.poll(0):
            os.write(2, line)
    except OSError:
        pass
