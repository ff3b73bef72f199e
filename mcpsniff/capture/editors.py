"""Who changed something on the way in a capture, told without decoding it."""

from typing import Final

from mcpsniff.capture.reader import Capture, open_regular
from mcpsniff.capture.records import AND, BRIEF_US, HOLD, REWRITE, Record

MOST: Final = 20
"""Names that are told apart."""
RECORDER: Final = "mcpsniff"
"""Who rewrites what has nothing to do with messages."""
_BLOCK: Final = 1 << 20
_MARKS: Final = tuple(f'"{kind}",'.encode() for kind in (REWRITE, HOLD))
"""Within a record's text quotes are escaped, so these stand for nothing else."""
_LONGEST: Final = max(map(len, _MARKS))


def editors(capture: Capture) -> tuple[str, ...]:
    """Return who changed or held something, in the order in which they first did; captured text.

    Nobody is told of a capture that can be read only once. What cannot be read is passed over.
    """
    if capture.reads_once or not (capture.is_kept or any(_may_be_edited(part.path) for part in capture.parts)):
        return ()
    names: dict[str, None] = {}
    for record in capture.records():
        if (by := _editor(record)) is not None:
            names.update(dict.fromkeys(by.split(AND)))
            if len(names) >= MOST:
                break
    return tuple(names)[:MOST]


def _editor(record: Record) -> str | None:
    if record.kind not in (REWRITE, HOLD):
        return None
    by, us = record.body.get("by"), record.body.get("us")
    if not isinstance(by, str) or (record.kind == REWRITE and by == RECORDER):
        return None
    is_brief = record.kind == HOLD and isinstance(us, int) and 0 < us < BRIEF_US and not record.body.get("why")
    return None if is_brief else by


def _may_be_edited(path: str) -> bool:
    """True if a file has such records, by its bytes alone."""
    before = b""
    try:
        with open_regular(path) as file:
            while block := file.read(_BLOCK):
                if any(mark in before + block for mark in _MARKS):
                    return True
                before = block[-_LONGEST:]
    except OSError:
        pass
    return False
