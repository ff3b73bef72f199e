"""Where a command's output goes: standard output, or a file that is private and appears only when it is whole."""

import os
import secrets
import signal
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

from mcpsniff.capture.labels import shown
from mcpsniff.errors import McpsniffError


@contextmanager
def output(path: str | None) -> Iterator[BinaryIO]:
    """A binary stream to write to: standard output, or for ``path`` a file of mode 0600.

    The file is written beside its place and renamed at the end, so that there is never half of one, and an existing
    one is replaced only by a whole one. A ``path`` that is a device or a pipe is written to as it is. Raises
    McpsniffError when the file cannot be written.
    """
    if path is None or path == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    target = os.path.realpath(path)
    try:
        if _is_special(target):
            with open(target, "wb") as file:
                yield file
            return
        with _renamed(target) as file:
            yield file
    except BrokenPipeError:
        raise
    except OSError as error:
        raise McpsniffError(f"cannot write {shown(path)}: {error.strerror or error}") from None


@contextmanager
def _renamed(target: str) -> Iterator[BinaryIO]:
    """A new file that takes the place of ``target`` when nothing went wrong, and vanishes otherwise."""
    if os.path.isdir(target):
        raise IsADirectoryError(21, "it is a folder")
    with appearing(target) as temporary, open(temporary, "wb") as file:
        yield file


@contextmanager
def appearing(target: str) -> Iterator[str]:
    """The path of a private, empty file beside ``target``, whose place it takes when all went well.

    Otherwise it vanishes: also when the process is ended by a signal. Raises OSError when it cannot be made.
    """
    temporary = os.path.join(os.path.dirname(target), f".mcpsniff-{secrets.token_hex(8)}.part")
    with _ended_in_order():
        try:
            os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
            yield temporary
            os.replace(temporary, target)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(temporary)
            raise


class _Ended(BaseException):
    """A signal that ends the process has come."""


@contextmanager
def _ended_in_order() -> Iterator[None]:
    """Let what is to be undone be undone before TERM or HUP ends the process, where nobody else sees to them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ours = [number for number in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(number) is signal.SIG_DFL]

    def end(number: int, _frame: object) -> None:
        for one in ours:
            signal.signal(one, signal.SIG_IGN)
        raise _Ended(number)

    for number in ours:
        signal.signal(number, end)
    try:
        yield
    except _Ended as ended:
        signal.signal(ended.args[0], signal.SIG_DFL)
        os.kill(os.getpid(), ended.args[0])
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)


def json_writer(stream: BinaryIO) -> Callable[[bytes], object]:
    """How to write JSON Lines there: to a terminal with escapes for what would act on it, which mean the same."""
    if not stream.isatty():
        return stream.write
    from mcpsniff.transcript.safe import visible_json_lines

    return lambda lines: stream.write(visible_json_lines(lines))


def _is_special(target: str) -> bool:
    try:
        mode = os.stat(target).st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def note(text: str) -> None:
    """Say one line on stderr, fit for a terminal; a closed stderr is nobody's trouble."""
    from mcpsniff.transcript.safe import visible

    try:
        sys.stderr.write(f"mcpsniff: {'\n'.join(map(visible, text.split('\n')))}\n")
        sys.stderr.flush()
    except OSError:
        pass
