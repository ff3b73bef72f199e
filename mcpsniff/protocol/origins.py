"""Servers by their origin: scheme, host and port, spelt in one way (RFC 6454 section 4, RFC 9110 section 4.2)."""

from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

_PORTS: Final = {"http": 80, "https": 443}


def split(url: str) -> tuple[str, str]:
    """Origin (``scheme://host:port``, without a default port) and path (at least ``/``); empty where it has none."""
    try:
        parts = urlsplit(url.strip())
        host, port = parts.hostname, parts.port
    except ValueError:
        return "", ""
    if not host or parts.scheme not in _PORTS:
        return "", ""
    name = f"[{host}]" if ":" in host else _ascii(host)
    shown = "" if port in (None, _PORTS[parts.scheme]) else f":{port}"
    return f"{parts.scheme}://{name}{shown}", parts.path or "/"


def _ascii(host: str) -> str:
    """A name in any letters as it is asked for (RFC 3490 section 4.1); as it is where that cannot be."""
    if host.isascii():
        return host
    try:
        return host.encode("idna").decode()
    except UnicodeError:
        return host


@lru_cache(maxsize=1024)
def server_of(scheme: str, authority: str) -> str:
    """The origin of the server that ``authority`` (``host:port``) names; without ``scheme``, the authority itself."""
    whole = f"{scheme}://{authority}" if scheme and authority else authority
    return split(whole)[0] or whole


def names_of(origin: str) -> set[str]:
    """What a server may be called: origin, host with port, host with the port that is not that of its scheme, host."""
    scheme, slashes, place = origin.lower().rpartition("://")
    host, colon, port = place.rpartition(":")
    if not (colon and port.isdecimal() and port.isascii()):
        host, port = place, str(_PORTS.get(scheme, ""))
    names = {origin.lower(), place, host, f"{host}:{port}" if port else place, host.strip("[]")}
    return {*names, f"{scheme}{slashes}{host}:{port}"} if slashes and port else names
