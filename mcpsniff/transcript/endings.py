"""What a transcript says about the end of a stream or of the server's process, in plain words.

The shapes are those that `mcpsniff.capture.writer` describes; a shape that is not known is quoted as it was recorded.
"""

import signal
from collections.abc import Sequence
from typing import Final

from mcpsniff.protocol.events import Close

_EOF: Final = {
    "stdin": "the client closed the server's stdin",
    "stdout": "the server closed its stdout",
    "stderr": "",  # every server's ends; nobody wants to read it
}
_RESET: Final = {
    "stdin": "reading from the client failed",
    "stdout": "reading the server's stdout failed",
    "stderr": "reading the server's stderr failed",
}
BROKEN_OFF: Final = "broken off by "
WE_STOPPED: Final = "mcpsniff was stopped"
"""What the relay records of a connection that its own end has cut off, and what is said of that."""
_OF_HTTP: Final = frozenset({"tcp", "http-request", "http-response"})
_ABORTED: Final = {
    ("stdin", "the server closed its end"): "the server closed its stdin and reads no more",
    ("stdin", "the client closed its end"): "mcpsniff closed the server's stdin, because the client stopped reading",
    ("stdin", "the server ended"): "the server had ended before the client closed its stdin",
    ("stdout", "the client closed its end"): "the client stopped reading the server's stdout",
    ("stderr", "the client closed its end"): "the client stopped reading the server's stderr",
    ("stderr", "held open by another process"): "another process still holds the server's stderr open",
    ("stderr", "not read by the client"): "the client did not read the rest of the server's stderr",
}
"""By the channel's kind and the recorded error."""


def close_words(close: Close) -> tuple[str, str, bool]:
    """What to say of an end (empty if nothing), what the capture or a peer says of it, and whether it is a bad one."""
    if close.ends_process:
        title, loud = _process(close)
        return title, _sent(close.sent, close.by), loud
    if close.kind in _OF_HTTP:
        if close.error == WE_STOPPED:
            return WE_STOPPED, "", False
        if close.how == "aborted" and close.direction == "s2c" and (close.error or "").startswith(BROKEN_OFF):
            return f"the connection to the client was {close.error}", "", False
        return "", "", False  # what that meant to an HTTP exchange is told with the exchange
    if close.how == "error":
        return "the server could not be started", close.error or "", True
    if close.how in ("eof", "") and not close.error:
        return _EOF.get(close.kind, f"channel {close.channel} ended"), "", False
    if close.how == "reset" and close.kind in _RESET:
        return _RESET[close.kind], close.error or "", False
    if close.how == "aborted" and close.is_ours and close.kind in _EOF:
        return f"the server's {close.kind} was {close.error}", "", False
    known = _ABORTED.get((close.kind, close.error or "")) if close.how == "aborted" else None
    if known is not None:
        return known, "", False
    stream = f"the server's {close.kind}" if close.kind in _EOF else f"channel {close.channel}"
    return f"{stream} was cut off", ", ".join(part for part in (close.how, close.error) if part), False


def _process(close: Close) -> tuple[str, bool]:
    if close.signal is not None:
        return f"the server was killed by signal {close.signal}{_name(close.signal)}", not close.sent
    if close.status is None:
        return "the server ended", False
    return f"the server exited with status {close.status}", close.status != 0


def _name(number: int) -> str:
    try:
        return f" ({signal.Signals(number).name.removeprefix('SIG')})"
    except ValueError:
        return ""


def _sent(names: Sequence[str], by: str | None) -> str:
    """Which signals had reached the server through mcpsniff; ``by`` tells who caused the last of them."""
    if not names:
        return ""
    *others, last = names
    who = f" by {'the client' if by == 'client' else by}" if by else ""
    if not others:
        return f"it had been sent {last}{who}"
    return f"it had been sent {', '.join(others)} and then {last}{f', the last{who}' if who else ''}"
