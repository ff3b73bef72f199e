"""HAR 1.2, as browsers, mitmproxy, Charles and others write it (w3c.github.io/web-performance/specs/HAR/Overview.html).

It holds texts, not bytes: content codings were removed, and whoever wrote it may have changed characters that it could
not decode. Of an event stream Chromium keeps the events with their times in a list of its own.
"""

import base64
import binascii
import json
from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime
from itertools import count
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import orjson

from mcpsniff.capture.urls import named_url
from mcpsniff.importers.har_text import in_bytes
from mcpsniff.importers.heard import (
    CLIENT,
    SECONDS,
    SERVER,
    Account,
    Half,
    Headers,
    Heard,
    ImportFileError,
    authority,
    without,
)

EVENT_STREAM: Final = "text/event-stream"
UTF_16: Final = (b"\xff\xfe", b"\xfe\xff")
"""How a file in UTF-16 begins, which PowerShell makes of what is written into a file."""
_UNKNOWN: Final = -1
_VERSIONS: Final = {"h2": "HTTP/2.0", "http/2.0": "HTTP/2.0", "http/2": "HTTP/2.0", "h3": "HTTP/3", "http/3": "HTTP/3"}
_BY_CLIENT: Final = ("abort", "cancel", "client disconnect")


class _BadEntryError(ValueError):
    """What is wrong with an entry."""


def read_har(data: bytes, account: Account) -> Iterator[Heard]:
    """Yield the HTTP exchanges of a HAR file, in its order.

    Raises ImportFileError with line and column where it is no JSON, or no HAR. Entries that cannot be read are passed
    over; ``account.bad`` names them.
    """
    log = _log(data)
    del data  # a file may take most of the memory that there is
    account.creator = _creator(log)
    entries: list[Any] = log["entries"]
    keeps_streams = any(map(_is_kept_stream, entries))
    entries.reverse()
    for number in count(1):
        if not entries:
            return
        try:
            entry = _object(entries.pop(), "the entry")
            heard = _heard(entry, f"entry {number}", account, keeps_streams=keeps_streams)
        except _BadEntryError as error:
            account.bad.append(f"entry {number} cannot be read: {error}")
            continue
        if heard.scheme in ("http", "https") and heard.method != "CONNECT":
            yield heard
        else:
            account.others += 1


def _loaded(data: bytes) -> Any:
    """The value in a file. Raises UnicodeDecodeError, JSONDecodeError, ValueError, RecursionError."""
    if data.startswith(UTF_16):
        data = data.decode("utf-16").encode()
    try:
        return orjson.loads(data.removeprefix(b"\xef\xbb\xbf"))
    except orjson.JSONDecodeError:  # it takes far less memory, and refuses half surrogates and NaN
        return json.loads(data.decode("utf-8-sig"))


def _log(data: bytes) -> dict[str, Any]:
    """The log, with a list of entries."""
    try:
        value = _loaded(data)
    except UnicodeDecodeError as error:
        raise ImportFileError(f"byte {error.start:,}: it is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise ImportFileError(f"line {error.lineno:,}, column {error.colno:,}: not JSON: {error.msg}") from None
    except (RecursionError, ValueError):
        raise ImportFileError("it is JSON that is nested too deep, or has a number that is too long") from None
    log = value.get("log") if isinstance(value, dict) else None
    if not isinstance(log, dict) or not isinstance(log.get("entries"), list):
        raise ImportFileError('it is JSON, but no HAR: there is no list "entries" in "log"')
    return log


def _creator(log: Mapping[str, Any]) -> str:
    """Which program wrote the file, with its version; empty if it does not say so."""
    creator = log.get("creator")
    creator = creator if isinstance(creator, dict) else {}
    return " ".join(filter(None, (_text(creator, name)[:60] for name in ("name", "version"))))


def _is_kept_stream(entry: Any) -> bool:
    """True for an entry with the text of an event stream: then who wrote the file had been keeping such bodies."""
    for name in ("response", "content"):
        entry = entry.get(name) if isinstance(entry, dict) else None
    return isinstance(entry, dict) and bool(entry.get("text")) and _media_type(_text(entry, "mimeType")) == EVENT_STREAM


def _heard(entry: Mapping[str, Any], place: str, account: Account, *, keeps_streams: bool) -> Heard:
    request = _object(entry.get("request"), '"request"')
    response = _object({} if entry.get("response") is None else entry["response"], '"response"')
    address = _text(request, "url", needed=True)
    try:
        url = urlsplit(address)
        host, port = url.hostname or "", url.port
    except ValueError:  # whose text quotes parts of it
        raise _BadEntryError('"url" has a host or port that cannot be read') from None
    scheme = {"ws": "websocket", "wss": "websocket"}.get(url.scheme, url.scheme)
    began, sent, answered, ended = _times(entry)
    target = (url.path or "/") + (f"?{url.query}" if url.query else "")
    start = f"{_text(request, 'method', needed=True)} {target} {_version(request)}"
    asked = Half(start, _headers(request, '"request"'), None, began, sent)
    asked.body = _posted(asked, request)
    status = _status(response.get("status"))
    failure = _text(response, "_error") or _text(entry, "_error")
    heard = Heard(
        place, _connection(entry, place), scheme, authority(scheme, host, port), asked, server=_server(entry, port)
    )
    if failure:
        heard.error = failure
        heard.broken_by = CLIENT if any(word in failure.lower() for word in _BY_CLIENT) else SERVER
    if status is not None:
        reason = _text(response, "statusText")
        head = f"{_version(response)} {status} {reason}".rstrip()
        heard.response = Half(head, _headers(response, '"response"'), None, answered, None if failure else ended)
        _answered(heard.response, response, entry, account)
        if keeps_streams and heard.method == "GET" and _may_be_empty(heard.response):
            heard.response.body = b""
    return heard


def _status(value: Any) -> int | None:
    """The status of a response, which some write as a text; None (mostly 0 in the file) if there was no response."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) == 3:
        value = int(value)
    return value if type(value) is int and 100 <= value <= 999 else None


def _answered(half: Half, response: Mapping[str, Any], entry: Mapping[str, Any], account: Account) -> None:
    """Fill in the body of a response."""
    content = response.get("content")
    content = content if isinstance(content, dict) else {}
    size = _number(content.get("size"))
    whole = size + max(_number(content.get("compression")), 0)
    half.body = _body(half, content, {size, whole})  # mitmproxy's size is that of the compressed body
    half.coding = ", ".join(value for name, value in half.headers if name.lower() == "content-encoding")
    half.headers = without(half.headers, "content-encoding")
    events = entry.get("_eventSourceMessages")
    if not half.body and isinstance(events, list) and events:
        half.pieces = list(_events(events, half.began))
        account.remarks.append(
            f"the event stream of {_entry_name(entry)} is put together from the list of its events, without comments"
        )
        half.body = b"".join(piece for _, piece in half.pieces)
    elif not half.body:
        half.size = size if size > 0 else None
        half.body = None if _must_have_body(half) or size > 0 else b""


def _must_have_body(half: Half) -> bool:
    """True for a success of a type that MCP has: with streamed bodies mitmproxy writes empty texts."""
    is_type = _media_type(half.get("content-type")) in ("application/json", EVENT_STREAM)
    return is_type and half.start.split(" ")[1] == "200" and half.get("content-length") != "0"


def _may_be_empty(half: Half) -> bool:
    """True for a stream without a body or a length: on one that a GET opens nothing need come."""
    is_stream = _media_type(half.get("content-type")) == EVENT_STREAM
    return is_stream and half.body is None and not half.size and not half.get("content-length")


def _entry_name(entry: Mapping[str, Any]) -> str:
    """The method and URL of an entry, for a remark, which is told on the terminal, too."""
    request = entry.get("request")
    request = request if isinstance(request, dict) else {}
    return f"{_text(request, 'method')} {named_url(_text(request, 'url'))}"


def _media_type(text: str) -> str:
    return text.partition(";")[0].strip().lower()


def _number(value: Any) -> int:
    return value if type(value) is int else _UNKNOWN


def _body(half: Half, content: Mapping[str, Any], sizes: Collection[int]) -> bytes | None:
    """The body of ``half``, which the file says to be of one of ``sizes``; None if it is not there."""
    text = content.get("text")
    if not isinstance(text, str):
        return None
    if str(content.get("encoding", "")).lower() == "base64":
        try:
            return base64.b64decode(text)
        except (binascii.Error, ValueError):
            raise _BadEntryError("its content is said to be base64, and is not") from None
    body, half.is_repaired = in_bytes(text, half.get("content-type") or _text(content, "mimeType"), sizes)
    return body


def _posted(half: Half, request: Mapping[str, Any]) -> bytes | None:
    """The body of a request; a form may be there as a list only."""
    data = request.get("postData")
    if not isinstance(data, dict):
        return b"" if request.get("bodySize", 0) in (0, _UNKNOWN, None) else None
    body = _body(half, data, {_number(request.get("bodySize"))})
    if body is not None and (body or not data.get("params")):
        return body
    params = data.get("params")
    if isinstance(params, list):
        pairs = [(str(one.get("name")), str(one.get("value", ""))) for one in params if isinstance(one, dict)]
        return urlencode(pairs).encode()
    return None


def _events(events: list[Any], began: int) -> Iterator[tuple[int, bytes]]:
    """The events that Chromium lists, each as a server would write it, with its time."""
    latest = began
    for event in events:
        if not isinstance(event, dict):
            continue
        when = event.get("time")
        if isinstance(when, int | float) and not isinstance(when, bool) and 0 < when < SECONDS.stop:
            latest = max(latest, round(when * 1_000_000))
        lines = [f"event: {_text(event, 'eventName')}"] if _text(event, "eventName") not in ("", "message") else []
        lines += [f"id: {_text(event, 'eventId')}"] if _text(event, "eventId") else []
        lines += [f"data: {line}" for line in _text(event, "data").split("\n")]
        yield latest, ("\n".join(lines) + "\n\n").encode("utf-8", "surrogatepass")


def _times(entry: Mapping[str, Any]) -> tuple[int, int, int, int]:
    """When the request began and ended, and the response (microseconds since the epoch)."""
    text = _text(entry, "startedDateTime", needed=True)
    try:
        started = datetime.fromisoformat(text)
        started = started if started.tzinfo else started.replace(tzinfo=UTC)
        at = round(started.timestamp() * 1_000_000)
        if at // 1_000_000 not in SECONDS:
            raise ValueError
    except (ValueError, OverflowError):
        raise _BadEntryError(f'"startedDateTime" is no time: {text[:60]!r}') from None
    timings = entry.get("timings")
    timings = timings if isinstance(timings, dict) else {}
    whole = at + _milliseconds(entry.get("time"))
    began = at + sum(_milliseconds(timings.get(name)) for name in ("blocked", "dns", "connect"))
    sent = began + _milliseconds(timings.get("send"))
    answered = sent + _milliseconds(timings.get("wait"))
    ended = answered + _milliseconds(timings.get("receive"))
    return began, sent, answered, max(ended, whole if ended == at else ended)


def _milliseconds(value: Any) -> int:
    """Milliseconds as microseconds; 0 for what is no time (-1: does not apply)."""
    is_time = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e11
    return round(value * 1000) if is_time else 0


def _headers(half: Mapping[str, Any], name: str) -> Headers:
    """The headers, in their order; pseudo headers of HTTP/2 are none."""
    listed = half.get("headers", [])
    if not isinstance(listed, list):
        raise _BadEntryError(f'"headers" of {name} is no list')
    pairs = []
    for one in listed:
        pair = (one.get("name"), _value(one.get("value"))) if isinstance(one, dict) else one
        if not isinstance(pair, list | tuple) or len(pair) != 2 or not all(isinstance(text, str) for text in pair):
            raise _BadEntryError(f'one of the "headers" of {name} has no name and value')
        if not pair[0].startswith(":"):
            # Chromium writes repeated headers as lines of one value.
            pairs += [(_safe(pair[0]), _safe(value)) for value in (pair[1].split("\n") if pair[1] else [""])]
    return pairs


def _value(value: Any) -> Any:
    """The value of a header, which some write as a number, or as null where it is empty."""
    return "" if value is None else str(value) if type(value) is int else value


def _version(half: Mapping[str, Any]) -> str:
    text = _text(half, "httpVersion")
    known = _VERSIONS.get(text.lower())
    return known or (text.upper() if text.upper().startswith("HTTP/") else "HTTP/1.1")


def _connection(entry: Mapping[str, Any], place: str) -> str:
    """What tells connections apart; without the id that few programs write each exchange has its own."""
    number = entry.get("connection")
    return f"{entry.get('serverIPAddress')} {number}" if isinstance(number, str) and number not in ("", "0") else place


def _server(entry: Mapping[str, Any], port: int | None) -> str:
    address = _text(entry, "serverIPAddress").strip("[]")
    url_port = port or (443 if _text(_object(entry["request"], ""), "url").startswith("https") else 80)
    return authority("", address, url_port) if address else ""


def _object(value: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise _BadEntryError(f"{name} is missing, or no object")
    return value


def _text(holder: Mapping[str, Any], name: str, *, needed: bool = False) -> str:
    value = holder.get(name)
    if isinstance(value, str) and (value or not needed):
        return _safe(value)
    if needed:
        raise _BadEntryError(f'"{name}" is missing, or no text')
    return ""


def _safe(text: str) -> str:
    """Half surrogates cannot be written as UTF-8."""
    return text.encode("utf-8", "backslashreplace").decode() if not text.isascii() else text
