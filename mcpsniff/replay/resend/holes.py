"""Text with holes where secrets stood: a command that is printed names them and never has them.

A capture has ``*`` for the secrets that were masked while it was recorded. Where it was recorded with
``--keep-secrets``, what would have been masked is found again by the same rules.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Final, NamedTuple

from mcpsniff.proxy.mask_argv import MASK, mask_argv
from mcpsniff.proxy.mask_head import SCHEMES
from mcpsniff.proxy.mask_keys import UrlScanner, decoded_text
from mcpsniff.proxy.mask_marks import Marks
from mcpsniff.proxy.mask_names import is_credential_header, is_telling_member
from mcpsniff.proxy.mask_told import without_secrets

_SCHEME: Final = re.compile(rf"(?:{'|'.join(word.decode() for word in SCHEMES)})\s+(?=\S)", re.IGNORECASE)
_USER: Final = re.compile(rb"(?<=://)[^/?#@\s]+(?:@[^/?#@\s]+)*(?=@)")
_STARS: Final = re.compile(rb"(?<==)\*+(?=[&#]|\Z)")
_KEY: Final = re.compile(rb"([\w.%-]+)=\Z")
_FORM_FIELD: Final = re.compile(rb"(?P<before>^|&)(?P<name>[^=&]*)(?P<between>=)(?P<value>[^&]*)")
_JSON_TEXT: Final = rb'[^"\\]*(?:\\.[^"\\]*)*'
_JSON_MEMBER: Final = re.compile(
    rb'(?P<before>")(?P<name>' + _JSON_TEXT + rb')(?P<between>"\s*:\s*")(?P<value>' + _JSON_TEXT + rb")", re.DOTALL
)
_ODD_QUOTE: Final = re.compile(r"\A[\"'][^&#]*")
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
    """A URL, or a text with one in it, without its user and the secrets in its query or fragment.

    What is hidden goes as far as a value does, whatever is in it: a quote does not end it.
    """
    plain_text = text.replace(MASK[0], "x")  # so that what is hidden differs from it
    data, hidden = (one.encode("utf-8", "surrogatepass") for one in (plain_text, without_secrets(plain_text)))
    is_hidden = [one != other for one, other in zip(data, hidden, strict=True)]
    marks = Marks(lambda: b"")
    scanner = UrlScanner(marks)
    scanner.reset(ends_at_space=False)
    scanner.scan(data, 0, len(data))
    spans = [(at, at + 1) for at, (one, other) in enumerate(zip(data, marks.masked(data), strict=True)) if one != other]
    recorded = text.encode("utf-8", "surrogatepass")
    spans += [found.span() for pattern in (_USER, _STARS) for found in pattern.finditer(recorded)]
    for start, stop in spans:
        is_hidden[start:stop] = [True] * (stop - start)
    return tuple(_parts(recorded, is_hidden))


def _parts(data: bytes, is_hidden: list[bool]) -> Iterator[str | Hole]:
    """The text, with a hole for each run of bytes that are hidden."""
    at = 0
    for hides, run in groupby(is_hidden):
        stop = at + len(list(run))
        if hides:
            named = _KEY.search(data[:at])
            yield Hole(variable(named[1].decode() if named else "userinfo" if data[:at].endswith(b"://") else "secret"))
        else:
            yield data[at:stop].decode("utf-8", "surrogatepass")
        at = stop


def words(argv: Iterable[str]) -> list[Holed]:
    """A command line, word by word."""
    masked = mask_argv(list(argv))
    found: list[Holed] = []
    for before, word in zip(["", *masked], masked, strict=False):
        parts: list[str | Hole] = []
        for place, piece in enumerate(word.split(MASK)):
            rest = piece
            if place:
                left = "".join(part for part in parts if isinstance(part, str))
                named = _OF_A_WORD.search(left)
                parts.append(
                    Hole(variable(named[1] if named else before.lstrip("-") if before.startswith("-") else "secret"))
                )
                if not left.endswith(piece[:1]) and not any(map(str.isspace, word)):
                    rest = _ODD_QUOTE.sub("", piece, count=1)  # a quote that nothing has opened is a part of the secret
            if rest:
                parts.append(rest)
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
