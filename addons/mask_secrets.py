"""Puts stars in the place of secrets in what server and client say, before the other side has them.

mcpsniff stdio --addon mask_secrets.py --set mask_what=api-keys --set mask_what=tokens -- SERVER
"""

import re
from collections.abc import Sequence
from typing import Any

from mcpsniff import Loader, Message, Returned, Told, ctx
from mcpsniff.export.redact.presets import PRESETS


def load(loader: Loader) -> None:
    """Declare the options."""
    loader.add_option("mask_what", Sequence[str], ["api-keys", "tokens"], "api-keys, tokens, email, home or addresses.")
    loader.add_option("mask_side", str, "both", "Whose messages.", choices=("server", "client", "both"))


def mcp_edit(message: Message) -> Returned:
    """Mask every text of params, result and error."""
    side = {"s2c": "server", "c2s": "client"}[message.direction]
    if ctx.options.mask_side not in ("both", side) or not isinstance(message.body, dict):
        return message
    found: set[str] = set()
    for part in message.body.keys() & {"params", "result", "error"}:
        message.body[part] = masked(message.body[part], found)
    return Told(message, f"masked: {', '.join(sorted(found))}") if found else message


def masked(value: Any, found: set[str]) -> Any:
    """``value`` with stars in its texts; ``found`` is told what they were."""
    if isinstance(value, dict):
        return {name: masked(inner, found) for name, inner in value.items()}
    if isinstance(value, list):
        return [masked(inner, found) for inner in value]
    if not isinstance(value, str):
        return value
    text = value.encode(errors="surrogatepass")
    for form in (form for name in ctx.options.mask_what for form in PRESETS[name]):
        if any(hint in text for hint in form.hints):
            text, count = form.pattern.subn(stars, text)
            found |= {form.what} if count else set()
    return text.decode(errors="surrogatepass")


def stars(match: re.Match[bytes]) -> bytes:
    """The text around a secret, and stars for it."""
    start, stop = match.span(match.re.groups and 1)
    whole, begin = match[0], match.start()
    return whole[: start - begin] + b"***" + whole[stop - begin :]
