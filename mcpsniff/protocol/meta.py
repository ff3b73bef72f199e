"""The rules for ``_meta``: key grammar, reserved prefixes, progress tokens, the envelope of modern requests.

Source: the "General fields" section of the basic page of each revision, and the basic page of 2026-07-28.
"""

import re
from typing import Any, Final

from mcpsniff.protocol.reading import Unread
from mcpsniff.protocol.revisions import (
    CLIENT_CAPABILITIES_KEY,
    CLIENT_INFO_KEY,
    PROTOCOL_VERSION_KEY,
    RESERVED_META_KEYS,
)

META_FLAWS: Final = {
    "meta-not-object": "_meta is not an object",
    "meta-key-format": "a _meta key breaks the naming rules",
    "meta-key-reserved": "an unknown _meta key under a prefix that is reserved for MCP",
    "progress-token-type": "progressToken is neither a string nor an integer",
    "envelope-key-missing": "a modern request without a required _meta key",
    "envelope-value-type": "a value of the modern envelope has the wrong type",
}

_LABEL: Final = r"[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_KEY: Final = re.compile(rf"(?:{_LABEL}(?:\.{_LABEL})*/)?(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)?\Z")
_RESERVED: Final = re.compile(r"[^./]+\.(?:modelcontextprotocol|mcp)(?:\.[^/]*)?/")


def meta_flaws(meta: Any) -> list[str]:
    """Flaws of a ``_meta`` value, wherever it stands."""
    if not isinstance(meta, dict):
        return ["meta-not-object"]
    flaws = []
    for key in meta:
        if key == "progressToken":
            token = meta[key]
            if isinstance(token, bool) or not isinstance(token, str | int):
                flaws.append("progress-token-type")
        elif not _KEY.match(key):
            flaws.append("meta-key-format")
        elif _RESERVED.match(key) and key not in RESERVED_META_KEYS:
            flaws.append("meta-key-reserved")
    return flaws


def envelope_flaws(meta: Any) -> list[str]:
    """Flaws of the envelope of a request whose ``_meta`` names a protocol version (2026-07-28 basic)."""
    if not isinstance(meta, dict) or PROTOCOL_VERSION_KEY not in meta or isinstance(meta, Unread):
        return []
    flaws = []
    capabilities = meta.get(CLIENT_CAPABILITIES_KEY)
    if CLIENT_CAPABILITIES_KEY not in meta:
        flaws.append("envelope-key-missing")
    info = meta.get(CLIENT_INFO_KEY, {"name": "", "version": ""})
    if (
        not isinstance(meta[PROTOCOL_VERSION_KEY], str)
        or (capabilities is not None and not isinstance(capabilities, dict))
        or not isinstance(info, dict)
        or not isinstance(info.get("name"), str)
        or not isinstance(info.get("version"), str)
    ):
        flaws.append("envelope-value-type")
    return flaws


def is_modern(meta: Any) -> bool:
    """True if ``_meta`` alone proves the modern era."""
    return isinstance(meta, dict) and PROTOCOL_VERSION_KEY in meta
