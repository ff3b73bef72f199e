"""Whether a capture holds anything: more than that a run began, and that connections came and went.

A run that nobody used leaves such a capture, and nobody who asks for the newest one means it.
"""

from collections.abc import Callable, Sequence
from typing import Final

from mcpsniff.capture.parser import Damage, PartParser
from mcpsniff.capture.reader import open_regular
from mcpsniff.capture.records import CHUNK, CLOSE, COMMENT, GAP, OPEN, Header, Record
from mcpsniff.errors import CaptureError

NOTHING: Final = "nothing is recorded"
"""How a comment of mcpsniff begins that says no more than that there is nothing."""
LARGEST: Final = 64 << 10
"""Bytes of a file beyond which it holds something."""
_HTTP: Final = frozenset({"http-request", "http-response"})
_OF_PROCESS: Final = frozenset({"exit", "killed", "error"})


def tells(record: Record) -> bool:
    """Say whether a record holds something: bytes, a head of HTTP, the end of a process, a loss, a remark."""
    body = record.body
    if record.kind == OPEN:
        return body.get("kind") in _HTTP
    if record.kind == CLOSE:
        return body.get("how") in _OF_PROCESS
    if record.kind == COMMENT:
        return not (body.get("by") == "mcpsniff" and str(body.get("text")).startswith(NOTHING))
    return True


def holds_nothing(files: Sequence[str]) -> bool:
    """Say whether the capture that consists of ``files`` holds nothing; False where that cannot be told."""
    return _holds_no(lambda _header: tells, files)


def asks_nothing(files: Sequence[str]) -> bool:
    """Say whether no client has said a byte in that capture; False where that cannot be told."""
    return _holds_no(_of_client, files)


def _of_client(header: Header) -> Callable[[Record], bool]:
    """Whether a record has something that a client said."""
    channels = (header.channels or {}).items()
    of_client = {int(number) for number, fields in channels if fields.get("dir") == "c2s" and number.isdecimal()}

    def says(record: Record) -> bool:
        if record.kind == OPEN and record.body.get("dir") == "c2s":
            of_client.add(-1 if record.channel is None else record.channel)
            return record.body.get("kind") in _HTTP
        return record.kind == GAP or (record.kind == CHUNK and record.channel in of_client)

    return says


def _holds_no(what: Callable[[Header], Callable[[Record], bool]], files: Sequence[str]) -> bool:
    if len(files) != 1:
        return False
    try:
        with open_regular(files[0]) as file:
            data = file.read(LARGEST + 1) or b""
    except (OSError, ValueError):
        return False
    if not data:
        return True
    damage: list[Damage] = []
    parser = PartParser(files[0], damage.append)
    try:
        records = parser.feed(data) + parser.finish()
    except CaptureError:
        return False
    header = parser.header
    if len(data) > LARGEST or damage or header is None or header.part != 1:
        return False
    return not any(map(what(header), records))
