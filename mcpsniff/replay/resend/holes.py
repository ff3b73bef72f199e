"""Text with holes where secrets stood: a command that is printed names them and never has them.

A capture has ``*`` for the secrets that were masked while it was recorded. Where it was recorded with
``--keep-secrets``, what would have been masked is found again by the same rules.
"""

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from mcpsniff.proxy.mask_argv import MASK, mask_argv
from mcpsniff.proxy.mask_head import SCHEMES
from mcpsniff.proxy.mask_keys import decoded_text
from mcpsniff.proxy.mask_names import is_credential_header, is_telling_member
from mcpsniff.proxy.mask_told import without_secrets

_SCHEME: Final = re.compile(rf"(?:{'|'.join(word.decode() for word in SCHEMES)})\s+(?=\S)", re.IGNORECASE)
_IN_A_URL: Final = re.compile(r"(?:(?<=://)|([\w.%-]+)=)(\*+)(?=[@&#]|$)")
_FORM_FIELD: Final = re.compile(rb"(?P<before>^|&)(?P<name>[^=&]*)(?P<between>=)(?P<value>[^&]*)")
_JSON_TEXT: Final = rb'[^"\\]*(?:\\.[^"\\]*)*'
_JSON_MEMBER: Final = re.compile(
    rb'(?P<before>")(?P<name>' + _JSON_TEXT + rb')(?P<between>"\s*:\s*")(?P<value>' + _JSON_TEXT + rb")", re.DOTALL
)
_NO_NAME: Final = re.compile(r"[^A-Z0-9]+")
_OF_A_WORD: Final = re.compile(r"([\w.-]+)[\"']?(?:\s*[=:]\s*|\s+)[\"']?(?:\w+\s+)?$")


class Hole(NamedTuple):
    """A secret that is to be filled in."""

    name: str
    """Of the environment variable that is to hold it."""


type Holed = tuple[str | Hole, ...]
"""A text in parts."""


def variable(name: str) -> str:
    """A name for an environment variable, made of any text."""
    made = _NO_NAME.sub("_", name.upper()).strip("_")[:60]
    return made if made and not made[0].isdigit() else f"SECRET_{made}".rstrip("_")


def header_value(name: str, value: str) -> Holed:
    """The value of a header; of credentials only the word of the scheme is kept."""
    if not is_credential_header(name):
        return url(value) if "://" in value else (value,)
    scheme = _SCHEME.match(value)
    return ((scheme[0],) if scheme else ()) + (Hole(variable(name)),)


def url(text: str) -> Holed:
    """A URL without its user and the secrets in its query or fragment."""
    return _split(without_secrets(text), _IN_A_URL, group=2)


def words(argv: Iterable[str]) -> list[Holed]:
    """A command line, word by word."""
    masked = mask_argv(list(argv))
    found: list[Holed] = []
    for before, word in zip(["", *masked], masked, strict=False):
        parts: list[str | Hole] = []
        for place, piece in enumerate(word.split(MASK)):
            if place:
                left = "".join(part for part in parts if isinstance(part, str))
                named = _OF_A_WORD.search(left)
                parts.append(
                    Hole(variable(named[1] if named else before.lstrip("-") if before.startswith("-") else "secret"))
                )
            if piece:
                parts.append(piece)
        found.append(tuple(parts))
    return found


def form(data: bytes) -> bytes:
    """A form with ``*`` for each secret in it, however it was recorded."""
    return _FORM_FIELD.sub(_hidden, data)


def json_object(data: bytes) -> bytes:
    """JSON with ``*`` for each text under the name of a secret."""
    return _JSON_MEMBER.sub(_hidden, data)


def _hidden(found: re.Match[bytes]) -> bytes:
    is_secret = is_telling_member(decoded_text(found["name"]))
    return found["before"] + found["name"] + found["between"] + (b"***" if is_secret else found["value"])


def holes(texts: Iterable[Holed]) -> list[str]:
    """The names of the variables in some texts, each once."""
    return list(dict.fromkeys(part.name for text in texts for part in text if isinstance(part, Hole)))


def plain(text: Holed) -> str:
    """The text with the names of the variables in its holes, for people."""
    return "".join(part if isinstance(part, str) else f"${part.name}" for part in text)


def _split(masked: str, wanted: re.Pattern[str], group: int) -> Holed:
    parts: list[str | Hole] = []
    done = 0
    for found in wanted.finditer(masked):
        start, stop = found.span(group)
        parts += [masked[done:start], Hole(variable(found[1] or "userinfo"))]
        done = stop
    return tuple(part for part in (*parts, masked[done:]) if part != "")
