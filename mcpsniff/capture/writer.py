"""Appends records to a capture file, whole ones only, and starts the next part when a part is full.

What is in a record besides t, kind and channel (docs/capture-format.md has the full table):

``open``
    ``{"kind","dir","conn","of"?,"meta"?}``. A wrapped server has channel 0 (stdin, c2s), 1 (stdout, s2c, of 0) and
    2 (stderr, s2c), all of conn 0.

``close`` of a wrapped server's channels; ``how`` is one of

    =========  ============================================================================================
    eof        the sender closed its end: the client closed stdin, or the server closed stdout or stderr
    aborted    the receiver closed its end, or the session ended with this channel still open; ``error`` says
               which: "the client closed its end", "the server closed its end", "the server ended",
               "held open by another process", "not read by the client"
    reset      reading failed
    exit       (channel 1) the server process ended; ``status`` is its exit status
    killed     (channel 1) the server process ended by a signal; ``signal`` is its number
    error      (channel 1) the server could not be started; ``error`` says why, ``status`` is what we exit with
    =========  ============================================================================================

    After ``aborted`` by the receiver the last chunk may not have reached it, or not whole.

    On channel 1 ``exit`` and ``killed`` carry ``sent``, the names of the signals that reached the server's process
    group through us before it ended, in order (absent when there were none), and ``by``, who caused the last of them:
    "client" (it signalled us) or "mcpsniff" (our shutdown order after the client's end of stdin, after it stopped
    reading, or after a signal that had no effect).

    Channel 1 has one close when the end of the stream and of the process come together (30 ms). A server that closes
    stdout and lives on has ``eof`` when that happens, and a second close, ``exit`` or ``killed``, when the process
    ends; likewise after ``aborted``. The second one says nothing about the bytes, which had ended before.

``close`` of a connection's channels (c2s, and s2c with ``of``); ``how`` is one of

    =========  ============================================================================================
    eof        the sender ended its stream; the other direction may go on
    reset      the sender reset the connection
    aborted    the receiver is gone, or the connection was ended with this channel still open; ``error`` says
               which: "the client closed its end", "the server closed its end", "mcpsniff refused the request",
               "mcpsniff answered in the server's place", "mcpsniff was stopped"
    =========  ============================================================================================

    Where mcpsniff answered itself (403, 502) its answer is a ``rewrite`` of length 0 on the s2c channel.

``gap``
    ``{"bytes","why"}``: so many bytes of that channel passed here and were not recorded: ``queue`` (the disk was
    slower than the traffic for longer than the queue lasts) or ``disk`` (it refused).

In the header of part 2 and later ``channels`` maps each open channel to its ``open`` body plus ``offset``, the number
of bytes in its chunks so far. Bytes in gaps are not counted: offsets are positions in what was recorded.
"""

import json
import os
import time
from binascii import b2a_base64
from collections.abc import Callable, Sequence
from json.encoder import encode_basestring
from typing import Any, Final

from mcpsniff.capture.ceiling import Ceiling
from mcpsniff.capture.records import CHUNK, CLOSE, FORMAT_VERSION, OPEN, Record
from mcpsniff.capture.store import new_part_file
from mcpsniff.errors import CaptureError

type Entry = tuple[int, str, int | None, Any] | Record
"""A `Record` or a plain tuple of its fields."""

_CROCKFORD: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_LAST_LOOK: Final = 1 << 20

_as_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode

FLOOD: Final = 256 << 10
"""Bytes in one append from which on it pays to load orjson. Most servers that a client starts never say that much at
once, and all of them would start later, and answer their first requests later, if it were loaded for them."""


def new_run_id(now_ms: int | None = None) -> str:
    """Return a fresh identifier of a run: a ULID, 26 characters that sort by time (github.com/ulid/spec)."""
    milliseconds = time.time_ns() // 1_000_000 if now_ms is None else now_ms
    number = milliseconds << 80 | int.from_bytes(os.urandom(10))
    return "".join(_CROCKFORD[number >> shift & 31] for shift in range(125, -1, -5))


def rfc3339(ns: int) -> str:
    """Return nanoseconds since the epoch as RFC 3339 in UTC, to the microsecond."""
    seconds, rest = divmod(ns, 1_000_000_000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{rest // 1000:06}Z"


class CaptureWriter:
    """Writes one run to the file behind ``descriptor``, in parts of at most ``part_limit`` bytes (None: one part).

    A part is also over when the next record comes more than ``part_age`` microseconds after its first one. ``ceiling``
    removes the oldest parts. ``header`` holds the fields of the first line besides ``mcpcap`` and ``part``; ``run`` and
    ``started`` must be there. Nothing is written before the first `append`. ``write`` and ``open_part`` are `os.write`
    and `new_part_file`, given so that a test can make them fail. Not safe for use by several threads.
    """

    def __init__(
        self,
        descriptor: int,
        path: str,
        header: dict[str, Any],
        *,
        part_limit: int | None = None,
        part_age: int | None = None,
        ceiling: Ceiling | None = None,
        write: Callable[[int, bytes], int] = os.write,
        open_part: Callable[[str, int], tuple[int, str]] = new_part_file,
    ) -> None:
        self.path = path
        """The first part's path."""
        self.failure: Exception | None = None
        """Why the last `append` stored less than it was given."""
        self._descriptor = descriptor
        self._header = header
        self._part = 1
        if ceiling is not None:
            part_limit = min(part_limit or ceiling.part_limit, ceiling.part_limit)
        self._part_limit = part_limit
        self._part_age = part_age
        self._ceiling = ceiling
        self._has_parts = part_limit is not None or part_age is not None
        self._part_began: int | None = None
        self._write = write
        self._open_part = open_part
        self._size = 0
        self._torn = False
        self._last_t = 0
        self._channels: dict[int, dict[str, Any]] = {}
        self._chunk_line: Callable[[int, int | None, str], bytes] = _chunk_line

    @classmethod
    def reopen(cls, path: str) -> "CaptureWriter":
        """Open an existing capture to append to its end, on a new line even if its last one was cut.

        Raises CaptureError if it is empty or cannot be opened for writing; a symbolic link is not followed.
        """
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError as error:
            raise CaptureError(f"cannot append to {path}: {error.strerror}") from None
        size = os.fstat(descriptor).st_size
        if not size:
            os.close(descriptor)
            raise CaptureError(f"cannot append to {path}: it is empty")
        self = cls(descriptor, path, {})
        end = os.pread(descriptor, _LAST_LOOK, max(0, size - _LAST_LOOK))
        self._size, self._torn, self._last_t = size, not end.endswith(b"\n"), _last_time(end)
        return self

    def append(self, records: Sequence[Entry]) -> int:
        """Append ``records`` and return how many of them, from the first, are whole in the file.

        Fewer than given means that the disk refused: `failure` says why. The file then ends with a whole record, or
        (where it cannot be shortened) with a cut one, which the next `append` ends with a newline. A record whose t
        is smaller than that before it gets the larger one, and its own as ``at``.
        """
        self.failure = None
        before = self._last_t
        stored = self._append(records)
        if stored < len(records):  # the others did not happen
            self._last_t = max([before, *(record[0] for record in records[:stored])])
        return stored

    def close(self) -> None:
        """Close the file; everything was handed to the system before."""
        os.close(self._descriptor)

    def _append(self, records: Sequence[Entry]) -> int:
        """Append ``records``, to as many parts as they need."""
        if self._chunk_line is _chunk_line and sum([len(r[3]) for r in records if r[1] == CHUNK]) >= FLOOD:
            self._chunk_line = _fast_chunk_line()
        lines = [self._encode(record) for record in records]
        heads = [] if self._size else [self._head()]
        if not self._has_parts:
            return self._put(records, heads, lines)
        stored = 0
        while True:
            fit = self._fitting(sum(map(len, heads)), records[stored:], lines)
            stored += self._put(records[stored : stored + fit], heads, lines[:fit])
            if self.failure or stored == len(records) or not self._rotate():
                return stored
            lines, heads = lines[fit:], [self._head()]

    def _fitting(self, size: int, records: Sequence[Entry], lines: list[bytes]) -> int:
        """Return how many of ``lines`` fit into this part after ``size`` bytes; a new part takes one, however long."""
        room = None if self._part_limit is None else self._part_limit - self._size - size
        for index, (record, line) in enumerate(zip(records, lines, strict=True)):
            if self._part_began is None:
                self._part_began = record[0]
            if self._part_age is not None and record[0] - self._part_began > self._part_age:
                return index
            if room is not None:
                room -= len(line)
                if room < 0:
                    return index or int(not self._size)
        return len(lines)

    def _head(self) -> bytes:
        """Return the first line of the current part."""
        head = {"mcpcap": FORMAT_VERSION, "run": None, "part": self._part, **self._header}
        if self._part > 1:
            head["channels"] = {str(channel): body for channel, body in self._channels.items()}
        return _dumps(head)

    def _encode(self, record: Entry) -> bytes:
        """Return the line of a record."""
        t, kind, channel, body, *late = record
        late = [at for at in late if at is not None]
        if t < self._last_t:
            t, late = self._last_t, late or [t]
        self._last_t = t
        if kind != CHUNK:
            return _dumps([t, kind, channel, body, *late])
        try:
            text = body.decode()
        except UnicodeDecodeError:
            return _dumps([t, kind, channel, {"b64": b2a_base64(body, newline=False).decode("ascii")}, *late])
        return _dumps([t, kind, channel, text, *late]) if late else self._chunk_line(t, channel, text)

    def _put(self, records: Sequence[Entry], heads: list[bytes], lines: list[bytes]) -> int:
        """Write the lines of ``records`` after those of ``heads``; return how many records are in the file."""
        pieces = [b"\n" if self._torn else b"", *heads, *lines]
        if sum(map(len, pieces)) < FLOOD:  # one call for many small ones; large ones are not worth a copy
            pieces = [b"".join(pieces)]
        done = 0
        try:
            for piece in pieces:
                rest = piece
                while rest:
                    written = self._write(self._descriptor, rest)
                    done += written
                    rest = rest[written:]
        except OSError as error:
            self.failure = error
            stored = max(0, self._mend(heads + lines, done) - len(heads))
        else:
            self._size += done
            self._torn = False
            stored = len(records)
        if self._has_parts:
            for record in records[:stored]:
                self._track(record)
        return stored

    def _mend(self, lines: list[bytes], done: int) -> int:
        """After ``done`` bytes of a refused write: end the file at a whole line, return how many of them it has."""
        good = int(self._torn)  # the newline that ends a cut line
        whole = 0
        while whole < len(lines) and good + len(lines[whole]) <= done:
            good += len(lines[whole])
            whole += 1
        if done < good:
            return 0
        self._torn = False
        if done > good:
            try:
                # Only what is ours: somebody may have appended a comment in the meantime.
                if os.fstat(self._descriptor).st_size == self._size + done:
                    os.ftruncate(self._descriptor, self._size + good)
                    done = good
            except OSError:
                pass
            self._torn = done > good
        self._size += done
        return whole

    def _track(self, record: Entry) -> None:
        """Keep what the header of the next part must tell about the open channels."""
        kind, channel, body = record[1:4]
        if channel is None:
            return
        if kind == OPEN:
            self._channels[channel] = {**body, "offset": 0}
        elif kind == CLOSE:
            self._channels.pop(channel, None)
        elif kind == CHUNK and channel in self._channels:
            self._channels[channel]["offset"] += len(body)

    def _rotate(self) -> bool:
        """Go on in the next part; on failure stay in this one."""
        try:
            descriptor, _ = self._open_part(self.path, self._part + 1)
        except (OSError, CaptureError) as error:
            self.failure = error
            return False
        os.close(self._descriptor)
        if self._ceiling is not None:
            self._ceiling.complete(self._part, self._size)
        self._descriptor, self._part, self._size, self._torn = descriptor, self._part + 1, 0, False
        self._part_began = None
        return True


def _chunk_line(t: int, channel: int | None, text: str) -> bytes:
    """Return the line of a chunk record."""
    return f'[{t},"chunk",{channel},{encode_basestring(text)}]\n'.encode()


def _fast_chunk_line() -> Callable[[int, int | None, str], bytes]:
    """Return a function that does the same several times faster, and takes some 30 ms to load."""
    import orjson

    # It works in a buffer eight times the text's size. glibc would map one anew for each chunk, and hand it back; once
    # a block of this size has been freed, it keeps such buffers (mallopt(3), M_MMAP_THRESHOLD).
    bytes(4 << 20)
    dumps, newline = orjson.dumps, orjson.OPT_APPEND_NEWLINE
    return lambda t, channel, text: dumps([t, CHUNK, channel, text], None, newline)


def _dumps(value: object) -> bytes:
    """Return ``value`` as one line of JSON in UTF-8, whatever the locale."""
    try:
        return (_as_json(value) + "\n").encode()
    except UnicodeEncodeError:  # a word of the command line or a path that is not UTF-8
        return (_as_json(_encodable(value)) + "\n").encode()


def _encodable(value: Any) -> Any:
    """Replace what is no Unicode in the strings of ``value``."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_encodable(key): _encodable(item) for key, item in value.items()}
    return [_encodable(item) for item in value] if isinstance(value, list | tuple) else value


def _last_time(end: bytes) -> int:
    """Return t of the last record that begins in ``end``, the file's last bytes; 0 if there is none."""
    for line in reversed(end.split(b"\n")):
        number, comma, _ = line[1:].partition(b",")
        if line.startswith(b"[") and comma and number.isdigit():
            return int(number)
    return 0
