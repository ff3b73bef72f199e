"""One authorization: the HTTP exchanges by which a client gets a token for a server, from the challenge to its use."""

from dataclasses import dataclass, field
from typing import Final

from mcpsniff.protocol.oauth_reading import Values
from mcpsniff.protocol.revisions import R_2025_03_26

CHALLENGE: Final = "challenge"
REFUSED: Final = "refused"
RESOURCE_METADATA: Final = "resource-metadata"
SERVER_METADATA: Final = "server-metadata"
REGISTRATION: Final = "registration"
PUSHED: Final = "pushed-request"
AUTHORIZATION: Final = "authorization"
REDIRECT: Final = "redirect"
TOKEN: Final = "token"  # noqa: S105 - the name of a step
REFRESH: Final = "refresh"
REVOCATION: Final = "revocation"
AUTHORIZED: Final = "authorized"

STEPS: Final = {
    CHALLENGE: "a request without a token, or with too little scope, is refused",
    REFUSED: "a request with a token is refused",
    RESOURCE_METADATA: "metadata of the protected resource (RFC 9728)",
    SERVER_METADATA: "metadata of the authorization server (RFC 8414, OpenID Connect Discovery)",
    REGISTRATION: "the client registers itself (RFC 7591)",
    PUSHED: "the authorization request is sent ahead (RFC 9126)",
    AUTHORIZATION: "the authorization request, which the browser brings",
    REDIRECT: "the browser brings its outcome to the client",
    TOKEN: "a token is asked for",
    REFRESH: "a token is asked for with an earlier one",
    REVOCATION: "a token is given back (RFC 7009)",
    AUTHORIZED: "the first request with the token is served",
}

NAMES_LIMIT: Final = 20
"""Addresses, issuers, client ids and the like that are kept of one authorization, of each the latest."""


def fact_of(step: str) -> str:
    """The fact (`mcpsniff.protocol.http_facts`) that stands for a step, by which checks are called."""
    return f"oauth-{step}"


@dataclass(slots=True, eq=False)
class Authorization:
    """What is known of it so far."""

    number: int
    """Its running number in the capture."""
    began: int = 0
    """The event that told of its first step; 0 until then."""
    server: tuple[str, str] | None = None
    """Authority and path of the requests it is for; None until one of them was refused."""
    origins: list[str] = field(default_factory=list)
    """Origins of the protected server, as the client and as the upstream have it."""
    address: str = ""
    """The URL that the client used for the protected server."""
    real: str = ""
    """The URL behind mcpsniff, the same if mcpsniff is no reverse proxy."""
    revision: str = R_2025_03_26
    """The revision by whose rules it goes, as far as is known: the one in which what was seen came up, or later."""
    is_challenged: bool = False
    has_pointer: bool = False
    """True if a challenge has named the resource's metadata."""
    has_metadata: bool = False
    """True once metadata of the resource were found."""
    resource: str = ""
    """The resource that these name."""
    issuers: list[str] = field(default_factory=list)
    """The authorization servers that these name."""
    issuer: str = ""
    """The issuer that the metadata of the authorization server name."""
    urls: dict[str, str] = field(default_factory=dict)
    """Addresses that were named, each with the step that is asked for there."""
    clients: list[str] = field(default_factory=list)
    """Client ids."""
    states: list[str] = field(default_factory=list)
    """Values of ``state``."""
    redirects: list[str] = field(default_factory=list)
    """Addresses to which the browser is to come back."""
    connections: list[int] = field(default_factory=list)
    steps: set[str] = field(default_factory=set)
    """The steps that were seen to succeed."""
    is_opened: bool = False
    """True if ``initialize`` without a token was refused."""
    is_granted: bool = False
    """True once a token was granted."""
    is_done: bool = False
    """True once a request with a token was served."""

    def name(self, url: str, step: str) -> None:
        """An address at which a step is asked for was named."""
        if url:
            self.urls.pop(url, None)
            self.urls[url] = step
            if len(self.urls) > NAMES_LIMIT:
                del self.urls[next(iter(self.urls))]


def note[Thing](things: list[Thing], thing: Thing) -> None:
    """Put ``thing`` at the end of a list of the latest."""
    if thing in things:
        things.remove(thing)
    things.append(thing)
    del things[:-NAMES_LIMIT]


@dataclass(slots=True, eq=False)
class Step:
    """One HTTP exchange as a step of an authorization."""

    name: str
    """A key of STEPS."""
    authorization: Authorization
    address: str
    """The URL that the client used, without query."""
    real: str
    """The URL behind mcpsniff."""
    revision: str
    """The revision by whose rules it is judged."""
    asked: Values
    """What the request said, in its query or body."""
    said: Values | None
    """What the response said: a JSON document, a challenge, the query of a redirect; None if it was none of these."""
    succeeded: bool
    resource: str = ""
    """The resource that was known before this step; empty if none was."""
    issuer: str = ""
    """The issuer that was known before this step."""
    is_last_try: bool = False
    """True if with this step the client has looked everywhere for metadata, and found none."""
