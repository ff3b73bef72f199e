"""What a capture is told of edits, whatever carries messages: bodies of `rewrite` and `hold` records, and bounds."""

from typing import Any, Final

from mcpsniff.proxy.answers import as_data

LIMIT: Final = 64 << 20
"""Bytes of a message that are held; a larger one passes unedited."""
NOTABLE_US: Final = 1_000
"""Microseconds for which a message may be held without a word about it, on purpose or not."""
LONG_US: Final = 10_000
"""Microseconds beyond which it is told although nobody waited on purpose; less may be a busy machine."""


def rewrite(start: int, length: int, data: bytes, by: str, why: str = "", *, us: int = 0) -> dict[str, Any]:
    """Instead of the ``length`` bytes at ``start`` leaves ``data``, which was held for ``us`` microseconds."""
    held = {"us": us} if us > NOTABLE_US else {}
    return {"start": start, "length": length, "data": as_data(data), "by": by, **_reason(why), **held}


def hold(start: int, length: int, us: int, by: str, why: str = "") -> dict[str, Any]:
    """The bytes leave as they came, ``us`` microseconds later; 0: they are held from now on."""
    return {"start": start, "length": length, "us": us, "by": by, **_reason(why)}


def _reason(why: str) -> dict[str, str]:
    return {"why": why} if why else {}
