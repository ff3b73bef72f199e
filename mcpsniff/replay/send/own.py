"""What a client that goes through a recording says of its own accord, where the recording does not have it."""

import asyncio
from contextlib import suppress
from itertools import count
from typing import Any

import orjson

from mcpsniff import __version__
from mcpsniff.protocol.message import ERROR, Message
from mcpsniff.protocol.revisions import LEGACY, RESERVED_META_KEYS
from mcpsniff.replay.send.guard import MOST_PAGES, TOOLS, Tools
from mcpsniff.replay.send.hearing import Hearing
from mcpsniff.replay.send.link import GoneError, Link, Sent, said

_NUMBERS = count(1)


async def ask(link: Link, hearing: Hearing, method: str, params: dict[str, Any], timeout: float) -> Message | None:
    """Send a request of our own and give the answer; None if none came in time. Raises UnreachableError."""
    key = f"mcpsniff-{next(_NUMBERS)}"
    answer = hearing.own(key)
    data = orjson.dumps({"jsonrpc": "2.0", "id": key, "method": method, "params": params})
    with suppress(GoneError, TimeoutError):
        await link.send(Sent(data, said(data)))
        return await asyncio.wait_for(answer, timeout)
    return None


async def initialize(link: Link, hearing: Hearing, revision: str | None, timeout: float) -> bool:
    """Make a handshake; ``revision`` is what the recording speaks. True if the server took it."""
    asked = revision if revision in LEGACY else LEGACY[-1]
    info = {"name": "mcpsniff", "version": __version__}
    answer = await ask(
        link, hearing, "initialize", {"protocolVersion": asked, "capabilities": {}, "clientInfo": info}, timeout
    )
    data = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
    with suppress(GoneError):
        await link.send(Sent(data, said(data)))
    return answer is not None and answer.kind != ERROR


async def list_tools(link: Link, hearing: Hearing, tools: Tools, call: Message, timeout: float) -> None:
    """Ask the server what it declares of its tools, as far as needed for ``call``."""
    meta = {name: value for name, value in call.meta.items() if name in RESERVED_META_KEYS}
    cursor: str | None = None
    for _ in range(MOST_PAGES):
        params: dict[str, Any] = {**({"cursor": cursor} if cursor else {}), **({"_meta": meta} if meta else {})}
        cursor = tools.asked(await ask(link, hearing, TOOLS, params, timeout))
        if cursor is None:
            return


async def cancel(link: Link, id_token: str) -> None:
    """Tell the server that a request is of no use any more."""
    params = b'{"requestId":' + id_token.encode() + b"}"
    data = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":' + params + b"}"
    with suppress(GoneError):
        await link.send(Sent(data, said(data)))
