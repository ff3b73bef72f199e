"""Opens a session over Streamable HTTP, sends one request and prints the answer."""

import json
import os
import sys
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any
from urllib.parse import urlsplit


# secrets
def secret(name: str) -> str:
    """A secret that the capture does not have."""
    if name not in os.environ:
        sys.exit(f"set {name}: it is masked in the capture")
    return os.environ[name]


# what was recorded
URL = ""
HEADERS: list[tuple[str, str]] = []
OPENING: list[str] = []
REQUEST = ""
ANSWERS: list[tuple[str, str]] = []
TIMEOUT = 30.0
# until here

session: dict[str, str] = {}


def main() -> int:
    """Send everything, print the answer; 1 if that is an error, or none came."""
    try:
        answer = None
        for message in [*OPENING, REQUEST]:
            answer = exchange(message)
    except (OSError, HTTPException, UnicodeError) as error:
        sys.stderr.write(f"{URL.partition('?')[0]}: {error or type(error).__name__}\n")
        return 1
    if answer is not None:
        sys.stdout.write(json.dumps(answer, indent=2) + "\n")
    return 1 if answer is not None and "error" in answer else 0


def exchange(message: str) -> "dict[str, Any] | None":
    """POST a message; of a request return the answer. What the server asks meanwhile is answered as recorded."""
    sent = json.loads(message)
    response = post(message)
    if given := response.headers.get("Mcp-Session-Id"):
        session["Mcp-Session-Id"] = given
    for said in messages(response):
        if "method" in said and "id" in said:
            post(reply(said)).read()
        elif "method" in said:
            sys.stderr.write(json.dumps(said) + "\n")
        elif sent.get("id") is not None and said.get("id") in (sent["id"], None):
            if sent.get("method") == "initialize" and "result" in said:
                session["MCP-Protocol-Version"] = str(said["result"].get("protocolVersion"))
            return said
    if sent.get("id") is not None:
        raise HTTPException(f"HTTP {response.status} {response.reason}, and no answer")
    return None


def post(message: str) -> HTTPResponse:
    """Send a message; return the response, whose body is still to be read."""
    parts = urlsplit(URL)
    of = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    connection = of(parts.hostname or "", parts.port, timeout=TIMEOUT)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    body = message.encode("utf-8", "surrogateescape")
    connection.putrequest("POST", path, skip_accept_encoding=True)
    for name, value in [*HEADERS, *session.items(), ("Content-Length", str(len(body)))]:
        connection.putheader(name, value)
    connection.endheaders(body)
    return connection.getresponse()


def messages(response: HTTPResponse) -> "Iterator[dict[str, Any]]":
    """What a response says: one JSON text, or the events of a stream."""
    kind = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if kind == "text/event-stream":
        texts = events(response)
    else:
        body = response.read()
        if response.status >= 400 and kind != "application/json":
            sys.stderr.write(f"HTTP {response.status} {response.reason}: {body[:2000]!r}\n")
        texts = iter([body])
    for text in texts:
        try:
            said = json.loads(text)
        except ValueError:
            continue
        yield from (one for one in (said if isinstance(said, list) else [said]) if isinstance(one, dict))


def events(lines: "HTTPResponse") -> "Iterator[bytes]":
    """The data of each event of a stream."""
    data: list[bytes] = []
    for line in lines:
        field, _, value = line.rstrip(b"\r\n").partition(b":")
        if field == b"data":
            data.append(value.removeprefix(b" "))
        elif not line.strip() and data:
            yield b"\n".join(data)
            data = []


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
