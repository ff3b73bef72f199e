"""The header fields of a request to a live server: what the recorded client sent, and what the transport asks for.

Credentials in a capture are never sent: they were another server's, perhaps. Whoever replays supplies them.
"""

import base64
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from mcpsniff.errors import UsageError
from mcpsniff.protocol.http import LAST_EVENT_ID, SESSION_HEADER, VERSION_HEADER
from mcpsniff.protocol.message import REQUEST, Message
from mcpsniff.protocol.param_headers import PREFIX, ParamHeader, argument
from mcpsniff.protocol.revisions import PROTOCOL_VERSION_KEY
from mcpsniff.proxy.mask_names import is_credential_header

type Headers = list[tuple[str, str]]

ACCEPT: Final = "application/json, text/event-stream"
ACCEPT_STREAM: Final = "text/event-stream"
JSON: Final = "application/json"
METHOD_HEADER: Final = "mcp-method"
NAME_HEADER: Final = "mcp-name"

_OURS: Final = frozenset(
    [
        *("host", "content-length", "connection", "keep-alive", "proxy-connection", "te", "trailer", "upgrade"),
        *("transfer-encoding", "expect", "accept-encoding", "content-encoding", "cookie", "via", "forwarded"),
        *("x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip", SESSION_HEADER, LAST_EVENT_ID),
    ]
)
"""What belongs to one connection or session, and is not taken over."""
_MASKED: Final = re.compile(r"\*{3,}")
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")
_PLAIN: Final = re.compile(r"[\x20-\x7e]*\Z")
_NAMED_BY: Final = {
    **dict.fromkeys(("tools/call", "prompts/get"), "name"),
    "resources/read": "uri",
    **dict.fromkeys(("tasks/get", "tasks/update", "tasks/cancel"), "taskId"),
}


def recorded_headers(headers: Iterable[tuple[str, str]]) -> Headers:
    """Those header fields of a recorded request that are sent again: no credentials, nothing of its connection."""
    return [(name, value) for name, value in headers if _is_sent_again(name, value)]


def _is_sent_again(name: str, value: str) -> bool:
    lowered = name.lower()
    if lowered in _OURS or is_credential_header(name) or _MASKED.search(value):
        return False
    return _TOKEN.match(name) is not None and value.isprintable()


def masked_headers(headers: Iterable[tuple[str, str]]) -> list[str]:
    """The names of the fields that are not sent again since they hold, or held, a credential."""
    return [name for name, value in headers if is_credential_header(name) or _MASKED.search(value)]


def given_headers(texts: Iterable[str]) -> Headers:
    """Header fields as a person writes them, ``NAME: VALUE``. Raises UsageError."""
    found: Headers = []
    for text in texts:
        name, colon, value = text.partition(":")
        if not colon or not _TOKEN.match(name.strip()) or any(ord(c) < 0x20 and c != "\t" for c in value):
            shown_name = name.strip() if colon and _TOKEN.match(name.strip()) else ""
            raise UsageError(f"--header wants 'NAME: VALUE'{f', and {shown_name} has none' if shown_name else ''}")
        found.append((name.strip(), value.strip()))
    return found


def standard_headers(messages: tuple[Message, ...]) -> Headers:
    """What a client that speaks Streamable HTTP sends with a text, in 2026-07-28 with what routes it."""
    headers: Headers = [("Content-Type", JSON), ("Accept", ACCEPT)]
    message = messages[0] if len(messages) == 1 else None
    revision = None if message is None else message.meta.get(PROTOCOL_VERSION_KEY)
    if message is None or message.kind != REQUEST or not isinstance(revision, str):
        return headers
    headers += [("MCP-Protocol-Version", header_value(revision)), ("Mcp-Method", header_value(message.method or ""))]
    if (name := named_by(message)) is not None:
        headers.append(("Mcp-Name", header_value(name)))
    return headers


def named_by(message: Message) -> str | None:
    """What ``Mcp-Name`` is to say of a request; None if it has none."""
    value = message.params.get(_NAMED_BY.get(message.method or "", ""))
    return value if isinstance(value, str) else None


def param_values(asked: Iterable[ParamHeader], message: Message) -> dict[str, str]:
    """The ``Mcp-Param-*`` headers of a ``tools/call``, by name, for a tool that asks for these."""
    found = {}
    for header in asked:
        value = argument(message.params.get("arguments"), header.path)
        if value is not None:
            found["Mcp-Param-" + header.name.removeprefix(PREFIX)] = header_value(value)
    return found


def header_value(value: Any) -> str:
    """A value as 2026-07-28 spells it in a header: as it is if it is plain, else in Base64 (request metadata)."""
    text = ("true" if value else "false") if isinstance(value, bool) else str(value)
    if _PLAIN.match(text) and text == text.strip() and not (text.startswith("=?base64?") and text.endswith("?=")):
        return text
    return f"=?base64?{base64.b64encode(text.encode(errors='replace')).decode()}?="


def merged(headers: Headers, over: Mapping[str, str | None] | Headers) -> Headers:
    """``headers`` with others in their place, whatever the case of the names; None leaves one out."""
    pairs = list(over.items()) if isinstance(over, Mapping) else list(over)
    names = {name.lower() for name, _ in pairs}
    kept = [(name, value) for name, value in headers if name.lower() not in names]
    return kept + [(name, value) for name, value in pairs if value is not None]


def has(headers: Iterable[tuple[str, str]], name: str) -> bool:
    """True if one of the fields has this name, in whatever case."""
    return any(key.lower() == name for key, _ in headers)


def value_of(headers: Iterable[tuple[str, str]], name: str) -> str | None:
    """The first value of a field; None if there is none."""
    return next((value for key, value in headers if key.lower() == name), None)


__all__ = [
    "ACCEPT",
    "ACCEPT_STREAM",
    "JSON",
    "METHOD_HEADER",
    "NAME_HEADER",
    "VERSION_HEADER",
    "Headers",
    "given_headers",
    "has",
    "header_value",
    "masked_headers",
    "merged",
    "named_by",
    "param_values",
    "recorded_headers",
    "standard_headers",
    "value_of",
]
