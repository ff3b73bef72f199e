"""Which names announce a secret: of options, variables, headers, query keys, and members of forms and JSON texts."""

from functools import lru_cache
from typing import Final

_ENDINGS: Final = (
    "apikey",
    "accesskey",
    "accesskeyid",
    "secretkey",
    "privatekey",
    "authkey",
    "token",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "connectionstring",
)
"""A name that ends so, written in any way (``--api-key``, ``MY_API_KEY``, ``apiKey``), has a secret for a value."""
_WORDS: Final = frozenset(
    ["pass", "pwd", "pat", "auth", "authorization", "bearer", "credential", "credentials", "cookie"]
)
"""Likewise a name whose last word is one of these."""

_PLACES: Final = ("pagetoken", "nexttoken", "continuationtoken", "progresstoken", "synctoken")
"""Tokens that say where one is, and open nothing."""
_OAUTH: Final = frozenset(
    [
        *("code", "codeverifier", "authorizationcode", "devicecode", "usercode", "assertion", "clientassertion", "jwt"),
        *("idtokenhint", "samlresponse", "authreqid", "otp", "totp", "passcode", "softwarestatement"),
    ]
)
"""What else is a secret in the forms and JSON texts of OAuth (RFC 6749, 7521-7523, 7591, 7636, 8628), OpenID Connect
(CIBA too) and SAML, and at logins, without ``_``."""
_OF_OAUTH: Final = frozenset(["granttype", "clientassertiontype", "redirecturis", "codechallenge"])
"""Names in requests of OAuth whose answers have secrets, wherever they are sent (RFC 6749, 7521, 7591, 9126)."""
KEY_TYPE: Final = "kty"
PRIVATE_PARTS: Final = frozenset(["d", "p", "q", "dp", "dq", "qi", "k"])
OTHER_PRIMES: Final = "oth"
"""Members of a JSON Web Key: its type, those that are secret, and a list of objects in which all are (RFC 7518, 6)."""
_KEYS: Final = frozenset(["key", "sig", "hmac"])
"""What else is one in the query or fragment of a URL, and what ends in ``signature``: who has such a URL may use it."""

_HEADERS: Final = frozenset(["dpop", "cookie2", "setcookie2", "authentication", "key", "xkey"])
_HEADER_ENDINGS: Final = (
    *("subscriptionkey", "functionskey", "masterkey", "jwtassertion", "jwt", "oidcdata"),
    *("clientattestation", "clientattestationpop"),
)
_SUBPROTOCOL: Final = "sec-websocket-protocol"
"""Pages in browsers put tokens here, since they can send no other header with a WebSocket."""
_OTHER_HEADERS: Final = ("mcp-", "sec-", "access-control-")
"""Headers that begin so hold no credentials: ``Mcp-Session-Id`` is needed for pairing, ``Mcp-Param-*`` repeats what
stands in the body, and the others are for browsers."""
_URL_HEADERS: Final = frozenset(
    [
        *("location", "content-location", "referer", "refresh", "link"),
        *("x-original-url", "x-original-uri", "x-rewrite-url", "x-forwarded-uri", "x-forwarded-url"),
    ]
)


_remembered = lru_cache(maxsize=1024)  # the same few names come again and again


def is_telling(name: str) -> bool:
    """Say whether a name's value is a secret. The end decides: ``max-tokens`` and ``token-limit`` say nothing."""
    words = name.lower().lstrip("-").replace(".", "-").replace("_", "-").split("-")
    return words[0] != "no" and (words[-1] in _WORDS or "".join(words).endswith(_ENDINGS))


@_remembered
def is_telling_key(name: str) -> bool:
    """Say whether the value of a key in the query or fragment of a URL is a secret."""
    joined = _joined(name)
    return is_telling_member(name) or joined in _KEYS or joined.endswith("signature")


@_remembered
def is_telling_member(name: str) -> bool:
    """Say whether the value of a form's field, or of a member of a JSON text, is a secret."""
    joined = _joined(name)
    return joined in _OAUTH or (is_telling(name) and not joined.endswith(_PLACES))


@_remembered
def is_of_oauth(name: str) -> bool:
    """Say whether a field or member of this name makes a request one that hands credentials over, wherever it goes."""
    return _joined(name) in _OF_OAUTH


@_remembered
def is_credential_header(name: str) -> bool:
    """Say whether a header's value is a secret, but for the word of an authentication scheme."""
    lowered = name.lower()
    if lowered.startswith(_OTHER_HEADERS):
        return lowered == _SUBPROTOCOL
    joined = _joined(lowered)
    return joined in _HEADERS or joined.endswith(_HEADER_ENDINGS) or is_telling(lowered)


@_remembered
def has_scheme(name: str) -> bool:
    """Say whether the value of a credential header may begin with the word of an authentication scheme."""
    return name.lower() == _SUBPROTOCOL or _joined(name).endswith(("authorization", "auth", "authentication"))


@_remembered
def is_url_header(name: str) -> bool:
    """Say whether a header's value is, or contains, a URL that may have secrets in its query or fragment."""
    return name.lower() in _URL_HEADERS


def _joined(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "").replace(".", "")
