"""A server on pipes that answers whatever has an id, and says every tenth time that it did."""

import json
import sys


def main() -> None:
    for line in sys.stdin.buffer:
        try:
            message = json.loads(line)
        except ValueError:
            continue
        if "id" not in message or "method" not in message:
            continue
        said = [{"jsonrpc": "2.0", "id": message["id"], "result": {"content": [{"type": "text", "text": "done"}]}}]
        if message["method"] == "initialize":
            said[0]["result"] = {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "s"},
            }
        elif message["id"] % 10 == 0:
            said.append({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}})
        sys.stdout.write("".join(json.dumps(one) + "\n" for one in said))
        sys.stdout.flush()


main()
