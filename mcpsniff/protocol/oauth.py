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
DEVICE: Final = "device-code"
REVOCATION: Final = "revocation"
AUTHORIZED: Final = "authorized"

STEPS: Final = {
    CHALLENGE: "a request without a token is refused",
    REFUSED: "a request with a token is refused, or needs more scope",
    RESOURCE_METADATA: "metadata of the protected resource (RFC 9728)",
    SERVER_METADATA: "metadata of the authorization server (RFC 8414, OpenID Connect Discovery)",
    REGISTRATION: "the client registers itself (RFC 7591)",
    PUSHED: "the authorization request is sent ahead (RFC 9126)",
    AUTHORIZATION: "the authorization request, which the browser brings",
    REDIRECT: "the browser brings its outcome to the client",
    DEVICE: "a code is asked for that is entered on another device (RFC 8628)",
    TOKEN: "a token is asked for",
    REFRESH: "a token is asked for with an earlier one",
    REVOCATION: "a token is given back (RFC 7009)",
    AUTHORIZED: "the first request with the token is served",
}

METADATA: Final = frozenset({RESOURCE_METADATA, SERVER_METADATA})

NAMES_LIMIT: Final = 20
"""Addresses, issuers, client ids and the like that are kept of one authorization, of each the latest."""


def fact_of(step: str) -> str:
    """The fact (`mcpsniff.protocol.http_facts`) that stands for a step, by which checks are called."""
    return f"oauth-{step}"


@dataclass(slots=True, eq=False)
class Authorization:
    """What is known of it so far."""

    number: int = 0
    """Its running number in the capture; 0 while it is nothing but a vain look for metadata."""
    began: int = 0
    """The event that told of its first step that was more than that; 0 until then."""
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
    promises_issuer: bool = False
    """True if these promise that redirects name it, too (RFC 9207 section 3)."""
    urls: dict[str, str] = field(default_factory=dict)
    """Addresses that were named, each with the step that is asked for there."""
    clients: list[str] = field(default_factory=list)
    """Client ids."""
    earlier_clients: list[str] = field(default_factory=list)
    """Those of the authorization before it at the same server."""
    sessions: list[str] = field(default_factory=list)
    """Ids of MCP sessions in which it was asked for, or used."""
    outcomes: list[str] = field(default_factory=list)
    """Values of ``state`` with which a redirect to the client was seen, empty where it had none."""
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

    def begin(self, n: int) -> None:
        """Event ``n`` has told of a step."""
        if self.number and not self.began:
            self.began = n

    def follow(self, other: "Authorization") -> None:
        """It is for the same server as another one that is over: what was named there may be used here, too."""
        self.urls, self.issuers, self.redirects = dict(other.urls), list(other.issuers), list(other.redirects)
        self.earlier_clients = list(dict.fromkeys([*other.earlier_clients, *other.clients]))[-NAMES_LIMIT:]
        self.issuer, self.promises_issuer = other.issuer, other.promises_issuer
        self.resource, self.has_metadata, self.has_pointer = other.resource, other.has_metadata, other.has_pointer
        self.revision = other.revision

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
    number: int = 0
    """The number of the authorization when this step was seen; 0 for a look in vain that nothing came of by then."""
    began: int = 0
    """The event that told of its first step; 0 if that is this one."""
    resource: str = ""
    """The resource that was known before this step; empty if none was."""
    issuer: str = ""
    """The issuer that was known before this step."""
    is_last_try: bool = False
    """True if with this step the client has looked everywhere for metadata, and found none."""
    is_unread: bool = False
    """True if the response is longer, or nested deeper, than mcpsniff reads."""
    is_repeated: bool = False
    """True if the browser brings what was seen before, when the authorization server sent it there."""

    @property
    def is_vain(self) -> bool:
        """True if metadata were looked for where there are none."""
        return self.name in METADATA and not self.succeeded
