"""Addresses as OAuth compares them: what the client asked for, what stands behind mcpsniff, and what metadata name."""

from typing import Final

from mcpsniff.protocol.http import HttpExchange, is_json_type, media_type
from mcpsniff.protocol.oauth_reading import Values, document, form
from mcpsniff.protocol.origins import split

RESOURCE: Final = "/.well-known/oauth-protected-resource"
SERVER: Final = "/.well-known/oauth-authorization-server"
OPENID: Final = "/.well-known/openid-configuration"


def normal(url: str) -> str:
    """A URL by which it can be found again: no query, no default port, host in lower case; empty if it is none."""
    origin, path = split(url)
    return origin + path if origin else ""


def is_url(url: str) -> bool:
    """True for an absolute ``http`` or ``https`` URL."""
    return bool(split(url)[0])


def asked_address(http: HttpExchange) -> str:
    """The URL that the client used, without query; empty if it is not known.

    A client in front of our reverse proxy uses a plain ``http`` address, whatever the upstream's scheme.
    """
    if "://" in http.target.partition("?")[0]:
        return normal(http.target)
    host = http.asks("host")
    origin, _ = split(http.authority)
    if host is None:
        return normal(origin + http.path) if origin else ""
    scheme = origin.partition("://")[0] or "http"
    if split(f"{scheme}://{host}")[0] != origin:
        scheme = "http"
    return normal(f"{scheme}://{host}{http.path}")


def real_address(http: HttpExchange) -> str:
    """The URL by which the server itself is reached, without query; empty if it is not known."""
    origin, _ = split(http.authority)
    return normal(origin + http.path) if origin else asked_address(http)


def resource_of(url: str) -> str:
    """The resource to which the URL of resource metadata belongs (RFC 9728 section 3); empty if it is none of those."""
    origin, path = split(url)
    if not origin or not path.startswith(RESOURCE):
        return ""
    rest = path[len(RESOURCE) :]
    return origin + rest if rest[:1] in ("", "/") else ""


def issuer_of(url: str) -> str:
    """The issuer to which the URL of server metadata belongs (RFC 8414 section 3.1, OpenID Connect Discovery)."""
    origin, path = split(url)
    if not origin:
        return ""
    for place in (SERVER, OPENID):
        if path.startswith(place):
            return origin + path[len(place) :]
    return origin + path[: -len(OPENID)] if path.endswith(OPENID) else ""


def is_at(issuer: str, url: str) -> bool:
    """True if ``url`` may have been made of this issuer: what does not show in an address does not count.

    That is a slash at its end, which is removed before (RFC 8414 section 3.1), and how its host is spelt.
    """
    return normal(issuer).rstrip("/") == normal(url).rstrip("/") != ""


def covers(resource: str, address: str) -> bool:
    """True if the resource is the address or stands above it, as the SDK clients compare them."""
    (origin, path), (other_origin, other_path) = split(resource), split(address)
    return origin == other_origin and (other_path.rstrip("/") + "/").startswith(path.rstrip("/") + "/")


def read_request(http: HttpExchange, body: bytes) -> Values | None:
    """What the body of a request says in the words of OAuth: a form, or a JSON object."""
    if is_json_type(media_type(http.asks("content-type"))):
        return document(body)
    return form(body.decode(errors="replace"))
