"""Which captures there are, and which one a person means by a path, a label, the start of a name, or nothing."""

import os
import re
import stat
from collections.abc import Callable
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Final, NamedTuple

from mcpsniff.capture.content import asks_nothing, holds_nothing
from mcpsniff.capture.labels import safe_label, shown
from mcpsniff.capture.reader import read_header
from mcpsniff.capture.records import Header
from mcpsniff.capture.store import ENVIRONMENT, STATE, SUFFIX, Warn, bare_folder, capture_folder, reason, split_part
from mcpsniff.errors import CaptureError

_NAME = re.compile(r"(?P<label>.+)-\d{8}T\d{6}\.\d{3}Z-\d+(-\d+)?", re.DOTALL)
TRY: Final = (
    "`mcpsniff stdio -- COMMAND`, `mcpsniff http URL`, `mcpsniff run -- CLIENT` or `mcpsniff import FILE` makes one"
)
"""What makes a capture."""


class Entry(NamedTuple):
    """One capture of a folder: all parts of one run."""

    path: str
    """Its first part that is there."""
    header: Header | None
    """None when it cannot be read; ``problem`` says why."""
    size: int
    """Bytes in all parts."""
    mtime: float
    """When the last part was written to, in seconds since the epoch."""
    parts: int = 1
    problem: str | None = None
    files: tuple[str, ...] = ()
    """The paths of its parts, in order."""

    @property
    def name(self) -> str:
        """The file's name without folder and suffix."""
        return os.path.basename(self.path).removesuffix(SUFFIX)

    @property
    def label(self) -> str:
        """The label as its owner gave it, or as the file's name has it."""
        if self.header and self.header.label:
            return self.header.label
        found = _NAME.fullmatch(self.name)
        return found["label"] if found else self.name

    @property
    def started(self) -> datetime:
        """When the run began; for an unreadable capture, when it was written to last."""
        if self.header is None:
            return datetime.fromtimestamp(self.mtime, UTC)
        started = datetime.fromisoformat(self.header.started)
        return started if started.tzinfo else started.replace(tzinfo=UTC)


class Found(NamedTuple):
    """What `find` chose, and from what."""

    path: str
    newest_of: int
    """Of how many captures it is the newest; 0: it was named outright."""
    which: str = ""
    """What these captures have in common, as it stands after "the newest one", such as ``called time``."""
    passed: int = 0
    """How many newer ones were passed over, since they hold nothing."""
    more: int = 0
    """How many have another label in which the name that was asked for is only a part."""
    lacking: str = "nothing was recorded"
    """What is so in those that were passed over."""
    beside: str = ""
    """The file of that name, which was passed over since it cannot be read as a capture."""

    @property
    def said(self) -> str:
        """The choice in words, such as ``the newest of 3 called time``; empty when there was none."""
        if not self.newest_of:
            return ""
        chosen = "the only one" if self.newest_of == 1 else f"the newest of {self.newest_of:,}"
        said = f"{chosen} {self.which}".rstrip()
        others = "a newer one" if self.passed == 1 else f"{self.passed:,} newer ones"
        said = f"{said} but for {others}, where {self.lacking}" if self.passed else said
        said = f"{said}; {self.more:,} more only contain that name" if self.more else said
        return f"{said}; the file {shown(self.beside)} cannot be read as a capture" if self.beside else said


def list_captures(folder: str) -> list[Entry]:
    """Return the captures that lie directly in ``folder``, by the time they started, oldest first.

    Files that cannot be read as captures are in the list too, with their problem. A folder that does not exist holds
    none. Raises CaptureError when it cannot be read.
    """
    parts: dict[str, list[tuple[int, os.stat_result]]] = {}
    try:
        with os.scandir(folder) as files:
            for file in files:
                if not file.name.endswith(SUFFIX):
                    continue
                try:
                    status = file.stat()
                except OSError:
                    continue
                if stat.S_ISREG(status.st_mode):
                    first, number = split_part(os.path.join(folder, file.name))
                    parts.setdefault(first, []).append((number, status))
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise CaptureError(f"cannot list the captures in {shown(folder)}: {reason(error)}") from None
    return sorted((_entry(first, sorted(found)) for first, found in parts.items()), key=lambda e: (e.started, e.path))


def find(
    what: str | None,
    directory: str | None = None,
    *,
    warn: Warn = lambda _text: None,
    even_without_content: bool = True,
    even_unasked: bool = True,
) -> Found:
    """Return the capture that ``what`` means.

    The first that is there counts: a path to a file, unless it cannot be read as a capture and there is one with
    exactly this label; the newest capture with exactly this label; a file name; the newest capture whose label begins
    with it, whose label contains it, whose file name begins with it. None means the newest capture of all. Unless it
    may be one ``even_without_content``, newer ones that hold nothing are passed over for one that holds something;
    unless it may be one ``even_unasked``, also those in which no client has said anything. ``directory`` is ``--dir``,
    see `store.capture_folder`. Raises CaptureError, with what may have been meant, when there is none.
    """
    is_empty = None if even_without_content else holds_nothing
    is_empty = is_empty if even_unasked else asks_nothing
    is_file = what is not None and os.path.isfile(what)
    if what is not None and (os.sep in what or (is_file and _is_capture(what))):
        return Found(what, 0)
    folder = capture_folder(directory, warn)
    entries = list_captures(folder)
    if directory is None and ENVIRONMENT not in os.environ and bare_folder() != folder:
        entries = sorted(entries + list_captures(bare_folder()), key=lambda entry: entry.started)
    readable = [entry for entry in entries if entry.header]
    if what is None:
        if readable:
            return _newest(readable, "", is_empty)
        if entries:
            raise CaptureError(f"no capture in {shown(folder)} can be read: `mcpsniff list` says why")
        raise CaptureError(f"there is no capture in {shown(folder)} yet: {TRY}{_elsewhere(folder, directory)}")
    for which, means in _meanings(what)[: 1 if is_file else None] if what else ():
        matches = [entry for entry in readable if means(entry)] or [entry for entry in entries if means(entry)]
        if matches:
            if not which:
                return Found(matches[-1].path, 0)
            found = _newest(matches, which, is_empty)
            is_exact = which.startswith("called ")
            more = sum(what in entry.label and not means(entry) for entry in readable) if is_exact else 0
            return found._replace(more=more, beside=what if is_file else "")
    if is_file:
        return Found(what, 0)  # reading it says what it is
    raise CaptureError(
        f"no capture in {shown(folder)} has the label or name {shown(what)}"
        f"{_suggestion(what, entries)}{_elsewhere(folder, directory)}"
    )


def _is_capture(path: str) -> bool:
    """True if a file begins as a capture, or is called as one."""
    if path.endswith(SUFFIX):
        return True
    try:
        read_header(path)
    except CaptureError:
        return False
    return True


def _newest(entries: list[Entry], which: str, is_empty: Callable[[tuple[str, ...]], bool] | None) -> Found:
    """Return the newest of ``entries``, which have ``which`` in common, that is not empty, if there is one."""
    chosen = len(entries) - 1
    if is_empty is not None:
        chosen = next((at for at in reversed(range(len(entries))) if not is_empty(entries[at].files)), chosen)
    found = Found(entries[chosen].path, len(entries), which, len(entries) - 1 - chosen)
    is_unasked = is_empty is asks_nothing and not all(holds_nothing(one.files) for one in entries[chosen + 1 :])
    return found._replace(lacking="no client said anything") if is_unasked else found


def _meanings(what: str) -> tuple[tuple[str, Callable[[Entry], bool]], ...]:
    """Return what a name can mean, the most exact first: in words (none for a file's whole name), and the test."""
    name, name_of_file = shown(what), what.removesuffix(SUFFIX)
    return (
        (f"called {name}", lambda entry: entry.label == what or safe_label(entry.label) == safe_label(what)),
        ("", lambda entry: entry.name == name_of_file),
        (f"whose label begins with {name}", lambda entry: entry.label.startswith(what)),
        (f"whose label contains {name}", lambda entry: what in entry.label),
        (f"whose file name begins with {name}", lambda entry: entry.name.startswith(name_of_file)),
    )


def _entry(first: str, found: list[tuple[int, os.stat_result]]) -> Entry:
    """Return the entry of one capture; ``found`` are the numbers and states of its parts, in order."""
    root = first.removesuffix(SUFFIX)
    files = tuple(first if number == 1 else f"{root}.{number:04}{SUFFIX}" for number, _ in found)
    path = files[0]
    size = sum(status.st_size for _, status in found)
    mtime = max(status.st_mtime for _, status in found)
    try:
        return Entry(path, read_header(path), size, mtime, len(found), None, files)
    except CaptureError as error:
        return Entry(path, None, size, mtime, len(found), str(error), files)


def _suggestion(what: str, entries: list[Entry]) -> str:
    labels = {entry.label for entry in entries}
    near = get_close_matches(what, sorted(labels), n=1, cutoff=0.5)
    if near:
        return f"; did you mean {shown(near[0])}?"
    some = ", ".join(shown(label) for label in sorted(labels)[:8])
    return f"; there are: {some}" if some else f"; it is empty: {TRY}"


def _elsewhere(folder: str, directory: str | None) -> str:
    """Say where the captures of servers that MCP clients start are, when that is another folder and holds some.

    Those servers do not see the variable that led here: ``MCPSNIFF_DIR``, or else that of the state folder.
    """
    other = bare_folder()
    if directory is None and other != folder and list_captures(other):
        variable = ENVIRONMENT if os.environ.get(ENVIRONMENT) else STATE
        return f" (servers that an MCP client starts do not see {variable}; theirs are in {shown(other)})"
    return ""
