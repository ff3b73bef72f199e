"""Opens a session over HTTP+SSE (2024-11-05), sends one request and prints the answer."""

import json
import os
import sys
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any
from urllib.parse import urljoin, urlsplit


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


def main() -> int:
    """Send everything, print the answer; 1 if that is an error, or none came."""
    try:
        stream = events(ask("GET", URL, [("Accept", "text/event-stream")], b""))
        endpoint = urljoin(URL, next((data for name, data in stream if name == b"endpoint"), b"").decode())
        answer = None
        for message in [*OPENING, REQUEST]:
            answer = exchange(endpoint, message, stream)
    except (OSError, HTTPException, UnicodeError) as error:
        sys.stderr.write(f"{URL.partition('?')[0]}: {error or type(error).__name__}\n")
        return 1
    if answer is not None:
        sys.stdout.write(json.dumps(answer, indent=2) + "\n")
    return 1 if answer is not None and "error" in answer else 0


def exchange(endpoint: str, message: str, stream: "Iterator[tuple[bytes, bytes]]") -> "dict[str, Any] | None":
    """POST a message; of a request return the answer. What the server asks meanwhile is answered as recorded."""
    post(endpoint, message)
    wanted = json.loads(message).get("id")
    if wanted is None:
        return None
    for _, data in stream:
        try:
            said = json.loads(data)
        except ValueError:
            continue
        if not isinstance(said, dict):
            continue
        if "method" in said and "id" in said:
            post(endpoint, reply(said))
        elif "method" in said:
            sys.stderr.write(json.dumps(said) + "\n")
        elif said.get("id") == wanted:
            return said
    raise HTTPException("the stream ended before the answer")


def post(endpoint: str, message: str) -> None:
    """Send a message; its answer comes on the stream."""
    body = message.encode("utf-8", "surrogateescape")
    response = ask("POST", endpoint, [("Content-Type", "application/json")], body)
    said = response.read()
    if response.status >= 400:
        raise HTTPException(f"HTTP {response.status} {response.reason}: {said[:2000]!r}")


def ask(method: str, url: str, headers: "list[tuple[str, str]]", body: bytes) -> HTTPResponse:
    """Send an HTTP request; return the response, whose body is still to be read."""
    parts = urlsplit(url)
    of = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    connection = of(parts.hostname or "", parts.port, timeout=TIMEOUT)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    connection.putrequest(method, path, skip_accept_encoding=True)
    for name, value in [*HEADERS, *headers, ("Content-Length", str(len(body)))]:
        connection.putheader(name, value)
    connection.endheaders(body)
    return connection.getresponse()


def events(lines: HTTPResponse) -> "Iterator[tuple[bytes, bytes]]":
    """The name and the data of each event of a stream."""
    if lines.status >= 400:
        raise HTTPException(f"HTTP {lines.status} {lines.reason}: {lines.read()[:2000]!r}")
    name, data = b"message", list[bytes]()
    for line in lines:
        field, _, value = line.rstrip(b"\r\n").partition(b":")
        if field == b"data":
            data.append(value.removeprefix(b" "))
        elif field == b"event":
            name = value.removeprefix(b" ")
        elif not line.strip():
            if data:
                yield name, b"\n".join(data)
            name, data = b"message", []


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
