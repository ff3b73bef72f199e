"""The demo's MCP server: it speaks 2025-11-25 over stdio, with a few faults that real servers have too.

    python -m mcpsniff.demo.server

The faults, in the order in which the demo's client provokes them: a banner on stdout; a tool without inputSchema; a
progress notification with a token that nobody offered; a request answered twice; an answer whose id is a string where
the request's was a number, so that the client waits in vain.
"""

import json
import sys
import time
from collections.abc import Callable
from typing import Any

REVISION = "2025-11-25"

type Json = dict[str, Any]

NUMBERS: Json = {
    "type": "object",
    "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
    "required": ["a", "b"],
}
PATTERN: Json = {"type": "object", "properties": {"pattern": {"type": "string"}}, "required": ["pattern"]}

TOOLS: list[Json] = [
    {"name": "add", "description": "Add two numbers.", "inputSchema": NUMBERS},
    {"name": "search", "description": "Search the notes, slowly.", "inputSchema": PATTERN},
    {"name": "open", "description": "Open a note.", "inputSchema": PATTERN},
    {"name": "forecast", "description": "Tell the weather. Its inputSchema was forgotten."},
]


def main() -> None:
    """Serve until stdin ends."""
    print("Notes server 1.0 is up and running!")  # noqa: T201  the first fault
    sys.stdout.flush()
    _log("loaded 3 notes")
    for line in sys.stdin:
        message = json.loads(line)
        if "method" not in message:
            _log(f"the client has {len(message['result']['roots'])} root")
        elif "id" in message:
            _answer(message)
        elif message["method"] == "notifications/initialized":
            _send({"jsonrpc": "2.0", "id": "roots-1", "method": "roots/list"})
    _log("bye")


def _answer(request: Json) -> None:
    method, params = request["method"], request.get("params", {})
    if method == "initialize":
        _result(
            request["id"],
            {
                "protocolVersion": REVISION,
                "capabilities": {"tools": {"listChanged": True}, "logging": {}},
                "serverInfo": {"name": "notes", "title": "Notes", "version": "1.0.0"},
                "instructions": "Search before you open.",
            },
        )
    elif method == "tools/list":
        _result(request["id"], {"tools": TOOLS})
    elif method == "tools/call" and params["name"] in CALLS:
        CALLS[params["name"]](request["id"], params)
    elif method == "ping":
        _result(request["id"], {})
    else:
        error = {"code": -32601, "message": f"Method not found: {method}"}
        _send({"jsonrpc": "2.0", "id": request["id"], "error": error})


def _add(request_id: int, params: Json) -> None:
    numbers = params["arguments"]
    total = numbers["a"] + numbers["b"]
    time.sleep(0.001)
    _send({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": "job-7", "progress": 1}})
    _text(request_id, str(total))
    _text(request_id, str(total))


def _search(request_id: int, params: Json) -> None:
    token = params["_meta"]["progressToken"]
    for done in (1, 2, 3):
        time.sleep(0.03)
        step = {"progressToken": token, "progress": done, "total": 3, "message": f"note {done} read"}
        _send({"jsonrpc": "2.0", "method": "notifications/progress", "params": step})
    found = [{"note": "groceries", "line": 4, "score": 0.90}, {"note": "ideas", "line": 17, "score": 0.25}]
    _text(request_id, json.dumps({"pattern": params["arguments"]["pattern"], "matches": found}))


def _open(request_id: int, params: Json) -> None:
    _log(f"no note matches {params['arguments']['pattern']!r}")
    _text(request_id, "There is no such note.", failed=True)


def _forecast(request_id: int, _params: Json) -> None:
    _text(str(request_id), "Sunny, 21 degrees.")


CALLS: dict[str, Callable[[int, Json], None]] = {
    "add": _add,
    "search": _search,
    "open": _open,
    "forecast": _forecast,
}


def _text(request_id: int | str, text: str, *, failed: bool = False) -> None:
    result: Json = {"content": [{"type": "text", "text": text}]}
    if failed:
        result["isError"] = True
    _result(request_id, result)


def _result(request_id: int | str, result: Json) -> None:
    _send({"jsonrpc": "2.0", "id": request_id, "result": result})


def _send(message: Json) -> None:
    sys.stdout.write(json.dumps(message, separators=(",", ":")) + "\n")
    sys.stdout.flush()


def _log(text: str) -> None:
    sys.stderr.write(f"[notes] {text}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    main()
