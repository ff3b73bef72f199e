"""What the messages of OAuth say: forms, queries, JSON documents and challenges, reduced to what tells about the flow.

Of a secret only that it was there is kept, as ``*``; so the values may be shown whatever the capture holds. All texts
are cut, and lists too, so that a hostile body takes no more room than an honest one.
"""

import re
from collections.abc import Iterable
from typing import Any, Final
from urllib.parse import parse_qsl

import orjson

type Values = dict[str, tuple[str, ...]]
"""By name: what was given, each as text."""

LONGEST: Final = 2_000
"""Characters of one value."""
MOST: Final = 20
"""Values of one name."""
DOCUMENT_LIMIT: Final = 65_536
"""Bytes of a form, or of a JSON text that is no message, up to which it is read: what OAuth has to say."""
DEEPEST: Final = 1_000
"""Levels of nesting up to which a JSON text can be read."""
FIELDS_LIMIT: Final = 200
"""Fields of a form or of a query."""

ISS_PROMISED: Final = "authorization_response_iss_parameter_supported"
"""The member of an authorization server's metadata by which it promises ``iss`` in redirects (RFC 9207 section 3)."""
ENDPOINTS: Final = (
    *("authorization_endpoint", "token_endpoint", "registration_endpoint", "revocation_endpoint"),
    *("introspection_endpoint", "pushed_authorization_request_endpoint", "device_authorization_endpoint"),
)
"""Members of an authorization server's metadata that are addresses of its own."""

_SECRETS: Final = frozenset(
    [
        *("access_token", "refresh_token", "id_token", "code", "code_verifier", "client_secret", "client_assertion"),
        *("assertion", "token", "device_code", "password", "registration_access_token"),
    ]
)
_PLAIN: Final = frozenset(
    [
        *("grant_type", "response_type", "client_id", "client_name", "redirect_uri", "redirect_uris", "resource"),
        *("state", "scope", "iss", "error", "error_description", "code_challenge", "code_challenge_method"),
        *("request_uri", "token_type", "token_type_hint", "expires_in", "application_type", "verification_uri"),
        *("token_endpoint_auth_method", "authorization_servers", "issuer", "code_challenge_methods_supported"),
        *("scopes_supported", "client_id_metadata_document_supported", ISS_PROMISED, *ENDPOINTS),
    ]
)
"""Names in RFC 6749, 7591, 7636, 8414, 8628, 8707, 9126, 9207, 9728 and OpenID Connect that tell about the flow."""
_LISTS: Final = frozenset(
    ["redirect_uris", "authorization_servers", "scopes_supported", "code_challenge_methods_supported"]
)
_FLAGS: Final = frozenset(["client_id_metadata_document_supported", ISS_PROMISED])
_NUMBERS: Final = frozenset(["expires_in"])
"""Members that are lists, booleans, or numbers; all others are strings, and none counts as given if it is not."""
_SCHEME: Final = re.compile(r"(?:^|,)\s*([A-Za-z][\w!#$%&'*+.^`|~-]*)(?:\s+(?!=)|\s*(?=,|$))")
_PARAMETER: Final = re.compile(r"""([\w-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]*))""")
_QUOTED_PAIR: Final = re.compile(r"\\(.)")


def is_masked(value: str) -> bool:
    """True for what mcpsniff has hidden, of which nothing but its length is known."""
    return bool(value) and not value.strip("*")


def one(values: Values, name: str) -> str | None:
    """The first value of a name; None if it was not given, or given empty (RFC 6749 section 3.1)."""
    return next((value for value in values.get(name, ()) if value), None)


def form(text: str) -> Values:
    """The fields of a form, or of a query. Raises nothing: what cannot be read is not there."""
    try:
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=FIELDS_LIMIT)
    except ValueError:
        return {}
    found: dict[str, list[str]] = {}
    for name, value in pairs:
        if name in _SECRETS or name in _PLAIN:
            found.setdefault(name, []).append(_told(name, value))
    return {name: tuple(values[:MOST]) for name, values in found.items()}


def document(body: bytes) -> Values | None:
    """The members of a JSON object that tell about the flow; None for anything else."""
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(value, dict):
        return None
    return {
        name: tuple(_told(name, text) for text in _texts(name, member))
        for name, member in value.items()
        if (name in _SECRETS or name in _PLAIN) and member is not None
    }


def is_beyond_reading(body: bytes) -> bool:
    """True for a JSON text that `document` cannot read because it is nested too deep, whatever else it may be."""
    return body.count(b"[") + body.count(b"{") > DEEPEST


def _texts(name: str, member: Any) -> Iterable[str]:
    """The values of a member, as texts; none if it is not of the type that it has to have."""
    if isinstance(member, list) is not (name in _LISTS):
        return
    for item in member[:MOST] if isinstance(member, list) else [member]:
        if name in _FLAGS:
            if isinstance(item, bool):
                yield str(item).lower()
        elif isinstance(item, str):
            yield item
        elif name in _NUMBERS and isinstance(item, int | float) and not isinstance(item, bool):
            yield str(item)


def _told(name: str, value: str) -> str:
    return "*" if name in _SECRETS and value else value[:LONGEST]


def token_challenge(headers: Iterable[str]) -> Values | None:
    """The parameters of the challenges in WWW-Authenticate that ask for a token; None if there are none.

    Those are Bearer (RFC 6750 section 3) and DPoP (RFC 9449 section 7.1); what both say is said by the first.
    """
    found: Values | None = None
    for header in headers:
        text = header[: 2 * LONGEST]
        quoted = [found.span() for found in _PARAMETER.finditer(text)]
        schemes = [found for found in _SCHEME.finditer(text) if not any(a < found.start(1) < b for a, b in quoted)]
        for index, scheme in enumerate(schemes):
            if scheme[1].lower() in ("bearer", "dpop"):
                stop = schemes[index + 1].start() if index + 1 < len(schemes) else len(text)
                found = {**_parameters(text[scheme.end(1) : stop]), **(found or {})}
    return found


def _parameters(text: str) -> Values:
    found: dict[str, tuple[str, ...]] = {}
    for name, quoted, token in _PARAMETER.findall(text):
        if len(found) < FIELDS_LIMIT:
            found.setdefault(name.lower(), (_QUOTED_PAIR.sub(r"\1", quoted) if quoted else token,))
    return found
