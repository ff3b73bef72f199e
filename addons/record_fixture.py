"""Writes each answered request of some methods as a JSON file: what was asked, and what came. For tests.

mcpsniff stdio --addon record_fixture.py --set fixture_dir=tests/fixtures -- SERVER
mcpsniff show --addon record_fixture.py --set fixture_dir=tests/fixtures CAPTURE
"""

import json
import os
import re
from collections.abc import Sequence

from mcpsniff import Loader, Message, ctx

asked: dict[tuple[int, str, object], Message] = {}
"""Requests without an answer, by conversation, direction and id."""
written: set[str] = set()


def load(loader: Loader) -> None:
    """Declare the options."""
    loader.add_option("fixture_dir", str, "fixtures", "The folder for the files, which is made.")
    loader.add_option("fixture_method", Sequence[str], ["tools/call"], "Methods to write down. May be set repeatedly.")


def mcp_request(message: Message) -> None:
    """Keep a request until its answer comes."""
    if message.method in ctx.options.fixture_method and message.key is not None:
        asked[message.conversation, message.direction, message.key] = message


def mcp_response(message: Message) -> None:
    """Write the file."""
    other = "c2s" if message.direction == "s2c" else "s2c"
    request = asked.pop((message.conversation, other, message.key), None)
    if request is None:
        return
    said = {name: message.body[name] for name in ("result", "error") if name in message.body}
    fixture = {"method": request.method, "params": request.body.get("params", {}), **said}
    path = new_path(request)
    with open(path, "x", encoding="utf-8", opener=private) as file:
        json.dump(fixture, file, ensure_ascii=False, indent=2)
        file.write("\n")
    ctx.log.info(f"wrote {path}")


def new_path(request: Message) -> str:
    """A file that is not there yet, named after method and tool."""
    target = request.link.target if request.link is not None else None
    name = re.sub(r"[^A-Za-z0-9._-]+", "_", "-".join(filter(None, (request.method, target))))[:100]
    os.makedirs(ctx.options.fixture_dir, mode=0o700, exist_ok=True)
    number = 1
    while os.path.exists(path := os.path.join(ctx.options.fixture_dir, f"{name}-{number}.json")):
        number += 1
    return path


def private(path: str, flags: int) -> int:
    """Open a file that only its owner may read: answers may hold secrets."""
    return os.open(path, flags, 0o600)
