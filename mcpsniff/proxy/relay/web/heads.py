"""Heads of HTTP/1.1 messages as text, changed in as few lines as can be."""

from collections.abc import Mapping, Sequence
from typing import Final

from mcpsniff.proxy.mask_names import is_credential_header
from mcpsniff.wire.http1_parts import CHUNKED, LENGTH, Head

type Pairs = list[tuple[str, str]]

REASONS: Final = {
    200: "OK", 202: "Accepted", 204: "No Content", 301: "Moved Permanently", 302: "Found", 304: "Not Modified",
    307: "Temporary Redirect", 308: "Permanent Redirect", 400: "Bad Request", 401: "Unauthorized", 403: "Forbidden",
    404: "Not Found", 405: "Method Not Allowed", 406: "Not Acceptable", 408: "Request Timeout", 409: "Conflict",
    410: "Gone", 413: "Content Too Large", 415: "Unsupported Media Type", 429: "Too Many Requests",
    500: "Internal Server Error", 501: "Not Implemented", 502: "Bad Gateway", 503: "Service Unavailable",
    504: "Gateway Timeout",
}  # fmt: skip
DIGESTS: Final = ("content-md5", "digest", "content-digest", "repr-digest")
"""Headers that say something of the bytes of a body that is another one now."""
LAST_CHUNK: Final = b"0\r\n\r\n"


def changed(head: Head, raw: bytes, headers: Pairs, status: int | None) -> tuple[int, int, bytes] | None:
    """What is to be put in the place of a stretch of ``raw`` so that it says these headers and this status.

    None if it does already. What is left alone keeps its bytes.
    """
    if headers == list(head.headers) and status == head.status:
        return None
    lines = _lines(raw)
    old = [line for line, _ in lines]
    start = old[0]
    if status is not None and status != head.status:
        start = f"{head.version} {status} {REASONS.get(status, '')}".encode("latin-1") + _line_end(start)
    known = iter(head.headers)
    waiting = [(next(known, None) if is_field else None, line) for line, is_field in lines[1:-1]]
    new = [start]
    for pair in headers:
        at = next((at for at, (said, _) in enumerate(waiting) if said == pair), None)
        if at is None:
            new.append(field(*pair))
        else:
            new += [line for said, line in waiting[:at] if said is None]
            new.append(waiting[at][1])
            del waiting[: at + 1]
    new += [line for said, line in waiting if said is None]
    new.append(old[-1])
    return _trimmed(old, new)


def field(name: str, value: str) -> bytes:
    """One header line; no value can begin another one."""
    text = f"{name}: {value}".replace("\r", " ").replace("\n", " ").replace("\0", " ")
    return text.encode("latin-1", "replace") + b"\r\n"


def set_header(headers: Pairs, name: str, value: str | None) -> None:
    """Put one value in the place of all that a header has; None removes it."""
    place = next((at for at, (key, _) in enumerate(headers) if key.lower() == name.lower()), None)
    spelt = name if place is None else headers[place][0]
    kept = [pair for pair in headers if pair[0].lower() != name.lower()]
    if value is not None:
        kept.insert(len(kept) if place is None else place, (spelt, value))
    headers[:] = kept


def for_body(head: Head, headers: Pairs, body: bytes, *, is_coded: bool, end: bytes = LAST_CHUNK) -> bytes:
    """Make ``headers`` true for another body, which is coded no more; return that in the framing it had.

    ``end``: the last chunk and the trailers that came, which stay, unless they say something of the other body.
    """
    for name in DIGESTS:
        set_header(headers, name, None)
    if is_coded:
        set_header(headers, "Content-Encoding", None)
    if head.get("transfer-encoding") is not None:  # a length beside it counts for nothing (RFC 9112 section 6.3)
        set_header(headers, "Content-Length", None)
    if head.framing == CHUNKED:
        lines = [line for line in (end or LAST_CHUNK).split(b"\n") if _name(line) not in DIGESTS]
        return (b"%x\r\n%s\r\n" % (len(body), body) if body else b"") + b"\n".join(lines)
    if head.framing == LENGTH or head.status is None:
        set_header(headers, "Content-Length", str(len(body)))
    return body


def cut_short(head: Head, framed: bytes, body: bytes, keep: int) -> bytes:
    """The first bytes of what `for_body` returned: ``keep`` of the body, or less, so that its end is missing."""
    if head.framing == CHUNKED:
        return framed[: framed.index(b"\r\n") + 2] + body[: max(0, keep)]
    return body[: max(0, min(keep, len(body) - 1))]


def answer(
    status: int, headers: Sequence[tuple[str, str]], body: bytes, request: Head, page: str | None = None
) -> bytes:
    """A whole response of ours to ``request``, after which the connection goes on if that wants it to.

    ``page`` is the origin that may read it besides those that need no leave.
    """
    pairs = list(headers)
    names = {name.lower() for name, _ in pairs}
    if "content-length" not in names and "transfer-encoding" not in names and status not in (204, 304):
        pairs.append(("Content-Length", str(len(body))))
    if not keeps(request) and "connection" not in names:
        pairs.append(("Connection", "close"))
    if page is not None and "access-control-allow-origin" not in names:
        pairs += [("Access-Control-Allow-Origin", page), ("Access-Control-Expose-Headers", "Mcp-Session-Id")]
    lines = [f"HTTP/1.1 {status} {REASONS.get(status, '')}\r\n".encode("latin-1"), *[field(*pair) for pair in pairs]]
    return b"".join([*lines, b"\r\n", b"" if request.method == "HEAD" else body])


def keeps(request: Head) -> bool:
    """True if the connection goes on after the response to ``request`` (RFC 9112 section 9.3)."""
    wishes = ", ".join(request.all("connection")).lower()
    return "close" not in wishes and (request.version.upper() != "HTTP/1.0" or "keep-alive" in wishes)


def says_close(response: bytes) -> bool:
    """True if a response of ours says that the connection ends after it."""
    lines = response.partition(b"\r\n\r\n")[0].lower().split(b"\r\n")
    return any(line.startswith(b"connection:") and b"close" in line for line in lines)


def with_headers(headers: Pairs, changes: Mapping[str, str | None]) -> None:
    """Set and remove headers."""
    for name, value in changes.items():
        set_header(headers, name, value)


def _lines(raw: bytes) -> list[tuple[bytes, bool]]:
    """Start line, header lines (a folded one is one), and the empty line; and whether each says a field.

    What is a field is known as in `mcpsniff.wire.http1_head.parse_fields`.
    """
    text = raw.lstrip(b"\r\n")
    first, *rest = text.split(b"\n")[:-1]
    lines = [(raw[: len(raw) - len(text)] + first + b"\n", False)]
    last = 0
    """Where the latest field is."""
    for line in rest:
        if last and line[:1] in (b" ", b"\t"):
            lines[last:] = [(b"".join([part for part, _ in lines[last:]]) + line + b"\n", True)]
            continue
        is_field = bool(line.partition(b":")[0].strip(b" \t")) and b":" in line
        last = len(lines) if is_field else last
        lines.append((line + b"\n", is_field))
    return lines


def _name(line: bytes) -> str:
    return line.partition(b":")[0].strip().lower().decode("latin-1")


def _line_end(line: bytes) -> bytes:
    return b"\r\n" if line.endswith(b"\r\n") else b"\n"


def _trimmed(old: list[bytes], new: list[bytes]) -> tuple[int, int, bytes] | None:
    """The stretch in which two lists of lines differ: where it starts and stops, and what is there now."""
    first = 0
    while first < min(len(old), len(new)) and old[first] == new[first]:
        first += 1
    last = 0
    while last < min(len(old), len(new)) - first and old[-1 - last] == new[-1 - last]:
        last += 1
    start = sum(map(len, old[:first]))
    stop = sum(map(len, old)) - sum(map(len, old[len(old) - last :]))
    data = b"".join(new[first : len(new) - last])
    if start == stop and not data:
        return None
    if len(old) == len(new) == first + last + 1 and old[first].endswith(b"\r\n") and data.endswith(b"\r\n"):
        skipped = _value(old[first], data)
        return start + skipped, stop - 2, data[skipped:-2]
    return start, stop, data


def _value(old: bytes, new: bytes) -> int:
    """How many bytes before the value two lines of the same header have in common; none if a secret is to be known."""
    name = old.partition(b":")[0]
    if is_credential_header(name.decode("latin-1")):
        return 0
    return len(name) + 2 if old.startswith(name + b": ") and new.startswith(name + b": ") else 0
