"""A server on pipes that answers whatever has an id, and says every tenth time that it did."""

import json
import sys
from typing import Any

ECHO = {"name": "echo", "inputSchema": {"type": "object", "properties": {"message": {"type": "string"}}}}
OPENING = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}


def main() -> None:
    for line in sys.stdin.buffer:
        try:
            message = json.loads(line)
        except ValueError:
            continue
        if "id" not in message or "method" not in message:
            continue
        said = [{"jsonrpc": "2.0", "id": message["id"], "result": result(message)}]
        if message["method"] == "tools/call" and message["id"] and message["id"] % 10 == 0:
            said.append({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}})
        sys.stdout.write("".join(json.dumps(one) + "\n" for one in said))
        sys.stdout.flush()


def result(message: dict[str, Any]) -> dict[str, Any]:
    if message["method"] == "initialize":
        return OPENING
    if message["method"] == "tools/list":
        return {"tools": [ECHO]}
    said = message.get("params", {}).get("arguments", {}).get("message", "")
    return {"content": [{"type": "text", "text": f"Echo: {said}"}]}


main()
