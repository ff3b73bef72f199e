"""What a file is that is no capture, judged by its first bytes, so that the refusal can say it."""

import re
from typing import Final

_SIGNATURES: Final = (
    (b"\x89PNG\r\n\x1a\n", "a PNG picture"),
    (b"\xff\xd8\xff", "a JPEG picture"),
    (b"GIF8", "a GIF picture"),
    (b"%PDF-", "a PDF document"),
    (b"\x1f\x8b", "gzip-compressed data; unpack it first"),
    (b"\x28\xb5\x2f\xfd", "zstd-compressed data; unpack it first"),
    (b"BZh", "bzip2-compressed data; unpack it first"),
    (b"\xfd7zXZ\x00", "xz-compressed data; unpack it first"),
    (b"PK\x03\x04", "a ZIP archive; unpack it first"),
    (b"\x0a\x0d\x0d\x0a", "a pcapng packet capture"),
    (b"\xd4\xc3\xb2\xa1", "a pcap packet capture"),
    (b"\xa1\xb2\xc3\xd4", "a pcap packet capture"),
    (b"\x7fELF", "a program"),
    (b"SQLite format 3\x00", "an SQLite database"),
    (b"#!", "a script"),
    (b"\xff\xfe", "UTF-16 text; a capture is UTF-8"),
    (b"\xfe\xff", "UTF-16 text; a capture is UTF-8"),
)

HAR: Final = "a HAR file"
FLOWS: Final = "a mitmproxy flow file"
IMPORTABLE: Final = frozenset({HAR, FLOWS})
"""What `mcpsniff import` makes captures of."""
_FLOW: Final = re.compile(rb"[0-9]{1,12}:[0-9]{1,3}:[a-z_]{1,40};")
"""A dictionary of tnetstrings, and its first key."""
LOOK: Final = 512
"""Bytes from the beginning of a file that are enough for a judgement."""


def looks_like(start: bytes) -> str:
    """Say what a file that begins with ``start`` looks like, with an article: "a PNG picture"."""
    for signature, name in _SIGNATURES:
        if start.startswith(signature):
            return name
    head = start[:LOOK].lstrip(b"\xef\xbb\xbf \t\r\n")
    squeezed = b"".join(head.split())
    if squeezed.startswith((b'{"log":', b'{"har":')):
        return HAR
    if _FLOW.match(start):
        return FLOWS
    if squeezed.startswith(b"{") and b'"jsonrpc"' in squeezed:
        return "a log of JSON-RPC messages"
    if squeezed.startswith((b"{", b"[")):
        return "other JSON"
    if b"\x00" in start[:LOOK] or not _is_text(start[:LOOK]):
        return "binary data"
    return "a web page" if squeezed.lower().startswith((b"<!doctypehtml", b"<html")) else "some other text"


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return error.start >= len(data) - 3  # a character cut by the look's end
    return True
