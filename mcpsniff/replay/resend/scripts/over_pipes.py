"""Starts an MCP server on pipes, opens a session, sends one request and prints the answer."""

import json
import os
import subprocess
import sys
from threading import Timer
from typing import Any


# secrets
def secret(name: str) -> str:
    """A secret that the capture does not have."""
    if name not in os.environ:
        sys.exit(f"set {name}: it is masked in the capture")
    return os.environ[name]


# what was recorded
COMMAND: list[str] = []
FOLDER = None
OPENING: list[str] = []
REQUEST = ""
ANSWERS: list[tuple[str, str]] = []
TIMEOUT = 30.0
# until here


def main() -> int:
    """Send everything, print the answer; 1 if that is an error, or none came."""
    try:
        server = subprocess.Popen(COMMAND, cwd=FOLDER, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    except OSError as error:
        sys.stderr.write(f"the server cannot be started: {error}\n")
        return 1
    deadline = Timer(TIMEOUT, server.kill)
    deadline.daemon = True
    deadline.start()
    try:
        answer = None
        for message in [*OPENING, REQUEST]:
            answer = exchange(server, message)
    except (BrokenPipeError, EOFError):
        server.kill()
        sys.stderr.write(f"the server ended, or nothing came within {TIMEOUT:g} s\n")
        return 1
    deadline.cancel()
    finish(server)
    if answer is not None:
        sys.stdout.write(json.dumps(answer, indent=2) + "\n")
    return 1 if answer is not None and "error" in answer else 0


def exchange(server: "subprocess.Popen[bytes]", message: str) -> "dict[str, Any] | None":
    """Send a message; of a request return the answer. What the server asks meanwhile is answered as recorded."""
    send(server, message)
    wanted = json.loads(message).get("id")
    if wanted is None:
        return None
    assert server.stdout is not None
    for line in server.stdout:
        try:
            said = json.loads(line)
        except ValueError:
            sys.stderr.write(f"no JSON: {line!r}\n")
            continue
        if not isinstance(said, dict):
            continue
        if "method" in said and "id" in said:
            send(server, reply(said))
        elif "method" in said:
            sys.stderr.write(json.dumps(said) + "\n")
        elif said.get("id") == wanted:
            return said
    raise EOFError


def send(server: "subprocess.Popen[bytes]", message: str) -> None:
    """Write a message to the server."""
    assert server.stdin is not None
    server.stdin.write(message.encode("utf-8", "surrogateescape") + b"\n")
    server.stdin.flush()


def finish(server: "subprocess.Popen[bytes]") -> None:
    """Let the server end, and wait for that."""
    assert server.stdin is not None
    server.stdin.close()
    try:
        server.wait(5)
    except subprocess.TimeoutExpired:
        server.kill()


def reply(asked: "dict[str, Any]") -> str:
    """The recorded answer to a request of the server."""
    for number, (method, answer) in enumerate(ANSWERS):
        if method == asked["method"]:
            del ANSWERS[number]
            return json.dumps({"jsonrpc": "2.0", "id": asked["id"], **json.loads(answer)})
    if asked["method"] == "ping":
        return json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": {}})
    error = {"code": -32601, "message": "no answer to this was recorded"}
    return json.dumps({"jsonrpc": "2.0", "id": asked["id"], "error": error})


if __name__ == "__main__":
    sys.exit(main())
