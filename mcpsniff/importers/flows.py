"""mitmproxy's flow files: a sequence of tnetstrings, read by mitmproxy's own reader.

They hold no times of single pieces of a body, and no body at all of what was streamed, unless mitmproxy was started
with ``store_streamed_bodies``.
"""

import re
from collections.abc import Iterator
from itertools import count
from typing import BinaryIO, Final

from mitmproxy.flow import Flow
from mitmproxy.http import HTTPFlow, Message
from mitmproxy.io import FlowReader

from mcpsniff.importers.heard import CLIENT, SECONDS, SERVER, Account, Half, Headers, Heard, authority

MICROSECONDS: Final = 1_000_000
_LENGTH: Final = re.compile(rb"([0-9]{1,12}):")
_BY_CLIENT: Final = ("client disconnect", "client closed", "stream closed by client", "cancel")


def read_flows(file: BinaryIO, size: int, account: Account) -> Iterator[Heard]:
    """Yield the HTTP exchanges of a flow file of ``size`` bytes, in its order.

    A flow that cannot be read is passed over, unless it is not known where the next one begins: ``account.bad`` names
    it and the byte at which it begins.
    """
    account.creator = "mitmproxy"
    bounded = _Bounded(file, size)
    flows = _flows(bounded)
    for number in count(1):
        begins = bounded.tell()
        try:
            flow: Flow = next(flows)
        except StopIteration:
            return
        except Exception as error:  # noqa: BLE001 - mitmproxy's reader raises whatever a broken file leads to
            account.bad.append(f"flow {number} at byte {begins:,} cannot be read: {_why(error, bounded)}")
            following = bounded.end_of_value(begins)
            if following is None:
                return
            bounded.seek(following)
            flows = _flows(bounded)
            continue
        try:
            heard = _heard(flow, number) if isinstance(flow, HTTPFlow) and flow.request.method != "CONNECT" else None
        except Exception as error:  # noqa: BLE001 - of what a flow holds mitmproxy's reader checks only a part
            account.bad.append(f"flow {number} at byte {begins:,} cannot be read: {_why(error, bounded)}")
            continue
        if heard is not None:
            yield heard
        else:
            account.others += 1
        account.others += isinstance(flow, HTTPFlow) and flow.websocket is not None


def _flows(file: "_Bounded") -> Iterator[Flow]:
    return iter(FlowReader(file).stream())  # type: ignore[arg-type]  # it reads, tells and seeks


class _Bounded:
    """A file that never promises more than it has: a length in the file must not decide how much memory is taken."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file = file
        self._size = size
        self.is_short = False

    def read(self, count: int) -> bytes:
        left = self._size - self._file.tell()
        self.is_short = count > left
        return self._file.read(min(count, left))

    def tell(self) -> int:
        return self._file.tell()

    def seek(self, place: int) -> int:
        return self._file.seek(place)

    def end_of_value(self, begins: int) -> int | None:
        """Where the dictionary (a tnetstring) that begins there ends, by its length; None if it does not."""
        self._file.seek(begins)
        found = _LENGTH.match(self._file.read(16))
        if found is None:
            return None
        end = begins + found.end() + int(found[1]) + 1
        if end > self._size:
            return None
        self._file.seek(end - 1)
        return end if self._file.read(1) == b"}" else None


def _why(error: Exception, file: _Bounded) -> str:
    if file.is_short:
        return "the file ends in the middle of it"
    cause = error.__cause__ or error
    text = str(cause).splitlines()[0][:120] if str(cause) else type(cause).__name__
    return f"it is no flow of mitmproxy ({text})"


def _heard(flow: HTTPFlow, number: int) -> Heard:
    request, response, error = flow.request, flow.response, flow.error
    broke_at = None if error is None else _us(error.timestamp)
    version = request.http_version
    asked = _half(f"{request.method} {_text(request.data.path)} {version}", request, broke_at)
    answered = None
    if response is not None:
        start = f"{response.http_version} {response.status_code} {_text(response.data.reason)}".rstrip()
        answered = _half(start, response, broke_at)
        answered.began = max(answered.began, asked.began)
    by_client = error is not None and any(words in error.msg.lower() for words in _BY_CLIENT)
    return Heard(
        f"flow {number}",
        flow.client_conn.id,
        request.scheme,
        authority(request.scheme, request.pretty_host, request.port),
        asked,
        answered,
        _address(flow.client_conn.peername),
        _address(flow.server_conn.peername),
        "" if error is None else CLIENT if by_client else SERVER,
        "" if error is None else error.msg,
    )


def _half(start: str, message: Message, broke_at: int | None) -> Half:
    began = _us(message.timestamp_start)
    ended = None if message.timestamp_end is None else max(began, _us(message.timestamp_end))
    if ended is None and broke_at is None and message.raw_content is not None:
        ended = began  # made by an addon, or by an old mitmproxy
    headers = [(_text(name), _text(value)) for name, value in message.headers.fields]
    body = message.raw_content
    length = message.headers.get("content-length", "")
    if body is None and (length == "0" or _has_no_body(start, headers)):
        body = b""
    return Half(start, headers, body, began, ended, int(length) if length.isdecimal() else None)


def _has_no_body(start: str, headers: Headers) -> bool:
    """True for a request without the headers that announce a body, and for a response that never has one."""
    if start.startswith("HTTP/"):
        return start.split(" ")[1] in ("204", "304")
    return not any(name.lower() in ("content-length", "transfer-encoding", "content-type") for name, _ in headers)


def _us(seconds: float) -> int:
    if int(seconds) not in SECONDS:
        raise ValueError(f"it was {seconds} seconds after 1970")
    return round(seconds * MICROSECONDS)


def _text(raw: bytes) -> str:
    return raw.decode("latin-1")  # as the engine on mitmproxy records them: reversible


def _address(pair: object) -> str:
    return f"{pair[0]}:{pair[1]}" if isinstance(pair, tuple) and len(pair) >= 2 else ""
