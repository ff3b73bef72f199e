"""The environment of a client under `mcpsniff run`: its HTTP goes through a proxy of ours, whose authority it trusts.

All of it is there before the first process of the client starts, since Node reads its part only then. What a client
takes no notice of cannot be set here; `mcpsniff.proxy.client_advice` names it at the end.

JAVA_TOOL_OPTIONS is left alone: Java's proxy and trust store could be set there, but each JVM then prints a line on
stderr, and the store would have to replace the one in use. So are NODE_OPTIONS, NODE_TLS_REJECT_UNAUTHORIZED, and
DENO_TLS_CA_STORE (DENO_CERT adds to any store).
"""

from collections.abc import Mapping
from typing import Final

PROXIES: Final = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
BYPASS: Final = "NO_PROXY"
NODE: Final = "NODE_USE_ENV_PROXY"
"""Has Node heed the variables above: fetch since 22.21 and 24.0, http and https since 22.21 and 24.5."""


def both(name: str) -> tuple[str, str]:
    """Return both spellings of a variable: programs differ in which they read, and in which one wins."""
    return name, name.lower()


def through_proxy(environment: Mapping[str, str], url: str, bundles: Mapping[str, str]) -> dict[str, str]:
    """Return ``environment`` with everything set so that a client uses the proxy at ``url``, and trusts ``bundles``.

    NO_PROXY is empty rather than absent: a program that has a list of its own, such as one with localhost, takes the
    variable in its place.
    """
    proxies = {spelling: url for name in PROXIES for spelling in both(name)}
    return {**environment, **proxies, **dict.fromkeys(both(BYPASS), ""), NODE: "1", **bundles}


def replaced(environment: Mapping[str, str]) -> list[str]:
    """Return the names of the proxy variables that the user had set; what was reached through those is not now."""
    return [name for each in PROXIES for name in both(each) if environment.get(name)]
