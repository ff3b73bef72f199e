"""What is known of MCP servers seen so far: where they speak it, and which OAuth exchanges belong to them.

Pure: it is told what was seen, and asked about URLs. The rules are those of RFC 9728 (protected resource metadata),
RFC 8414 (authorization server metadata), and the fallbacks of the MCP specification of 2025-03-26.
"""

from typing import Any, Final
from urllib.parse import urlsplit

PLACES: Final = 4096
"""URLs and origins of one kind that are remembered; beyond it the oldest are forgotten."""
RESOURCE: Final = "/.well-known/oauth-protected-resource"
ISSUER_DOCUMENTS: Final = ("/.well-known/oauth-authorization-server", "/.well-known/openid-configuration")
FALLBACKS: Final = {"/authorize": ("GET", "HEAD"), "/token": ("POST",), "/register": ("POST",)}
"""Where 2025-03-26 has an authorization server that publishes nothing, and how they are asked."""
_READ: Final = ("GET", "HEAD", "OPTIONS")
_ENDPOINTS: Final = {
    "authorization_endpoint": ("GET", "HEAD"),  # a POST there may be somebody's login
    "token_endpoint": ("POST", "OPTIONS"),
    "registration_endpoint": ("POST", "OPTIONS"),
    "revocation_endpoint": ("POST", "OPTIONS"),
    "device_authorization_endpoint": ("POST", "OPTIONS"),
    "pushed_authorization_request_endpoint": ("POST", "OPTIONS"),
}
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


class _Bounded(dict[str, tuple[str, ...]]):
    """Remembers the latest `PLACES` keys."""

    def add(self, key: str, methods: tuple[str, ...] = ()) -> None:
        """Remember ``key``, and with it the methods that are meant; those of before count, too."""
        known = self.pop(key, ())
        self[key] = (*known, *[method for method in methods if method not in known])
        if len(self) > PLACES:
            del self[next(iter(self))]


class Known:
    """The MCP servers seen so far."""

    def __init__(self) -> None:
        self._servers = _Bounded()
        self._places = _Bounded()
        self._challenged = _Bounded()
        self._issuers = _Bounded()
        self._urls = _Bounded()

    def speaks(self, origin: str, path: str) -> None:
        """MCP was spoken at ``path`` (without query) of ``origin``."""
        self._servers.add(origin)
        self._places.add(origin + path)

    def is_server(self, origin: str) -> bool:
        """True if MCP was spoken somewhere at ``origin``."""
        return origin in self._servers

    def is_place(self, origin: str, path: str) -> bool:
        """True if MCP was spoken at ``path`` of ``origin``."""
        return origin + path in self._places

    def is_authorizing(self, origin: str) -> bool:
        """True if ``origin`` is an authorization server of an MCP server."""
        return origin in self._issuers

    def challenged(self, origin: str, challenge: str) -> None:
        """A server of MCP at ``origin`` answered 401 or 403, with ``challenge`` as WWW-Authenticate (maybe empty)."""
        self._challenged.add(origin)
        self.leads_to(parameter(challenge, "resource_metadata"))

    def leads_to(self, url: str) -> None:
        """A metadata document is at ``url`` instead (RFC 9110 section 15.4)."""
        place = split(url)
        if place is not None:
            self._urls.add("".join(place), _READ)

    def belongs(self, method: str, origin: str, path: str) -> bool:
        """True if a request to ``path`` of ``origin`` is part of how a client gets access to a known server."""
        if method in self._urls.get(origin + path, ()):
            return True
        is_server = self.is_server(origin)
        if is_server and method in _READ and _is_below(path, RESOURCE):
            return True
        if (is_server or origin in self._issuers) and method in _READ and is_document(path):
            return True
        return origin in self._challenged and method in FALLBACKS.get(path, ())

    def learn(self, document: Any) -> None:
        """Take what a metadata document says: of a protected resource, or of an authorization server."""
        if not isinstance(document, dict):
            return
        servers = document.get("authorization_servers")
        for issuer in servers[:16] if isinstance(servers, list) else ():
            place = split(issuer)
            if place is not None:
                self._issuers.add(place[0])
        for name, methods in _ENDPOINTS.items():
            place = split(document.get(name))
            if place is not None:
                self._urls.add("".join(place), methods)
                self._issuers.add(place[0])


def is_document(path: str) -> bool:
    """True if ``path`` may be that of an authorization server's metadata."""
    return any(_is_below(path, document) for document in ISSUER_DOCUMENTS) or path.endswith(ISSUER_DOCUMENTS[1])


def is_metadata(path: str) -> bool:
    """True if ``path`` may be that of any metadata document of OAuth."""
    return _is_below(path, RESOURCE) or is_document(path)


def split(url: Any) -> tuple[str, str] | None:
    """Return origin (``https://host:443``, the port always there) and path of an absolute URL; None if it is none."""
    if not isinstance(url, str) or len(url) > 8192:
        return None
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if not host or parts.scheme not in _DEFAULT_PORTS:
        return None
    return origin_of(parts.scheme, host, port), parts.path or "/"


def origin_of(scheme: str, host: str, port: int | None) -> str:
    """Return the origin as all of this module has it."""
    host = host.strip("[]").rstrip(".").lower()
    named = f"[{host}]" if ":" in host else host
    return f"{scheme}://{named}:{_DEFAULT_PORTS.get(scheme, 0) if port is None else port}"


def parameter(challenge: str, name: str) -> str:
    """Return the value of an auth-param in a WWW-Authenticate (RFC 9110 section 11.6.1), or nothing."""
    at = challenge.lower().find(f"{name}=")
    if at < 0 or (at > 0 and challenge[at - 1] not in " ,\t"):
        return ""
    value = challenge[at + len(name) + 1 :]
    if value.startswith('"'):
        return value[1:].partition('"')[0]
    return value.partition(",")[0].partition(" ")[0]


def _is_below(path: str, root: str) -> bool:
    return path == root or path.startswith(root + "/")
