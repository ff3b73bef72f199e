"""The demo's client over HTTP: it finds out which transport the server has, holds one short session, and leaves.

Like the clients of the SDKs it posts `initialize` first, turns to the legacy transport (MCP 2024-11-05, HTTP with SSE)
when that is refused, insists on an endpoint at the origin it was given, and listens for events named `message` only.
"""

import json
import queue
import threading
import time
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPException, HTTPResponse
from socket import SHUT_RDWR
from typing import Final
from urllib.parse import urljoin, urlsplit

from mcpsniff.demo.client import PATIENCE, REVISION, SHORT_PATIENCE, DemoError, Json

ACCEPT: Final = "application/json, text/event-stream"


class SseClient:
    """A client of the server at ``url``. Raises DemoError when that does not do as it should."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._events: queue.Queue[tuple[str, str]] = queue.Queue()
        self._next_id = 0
        self._posts = self._connection()
        if self._post(url, self._initialize()) != 405:
            raise DemoError("the server does not refuse the newer transport")
        self._stream = self._connection()
        self._stream.request("GET", urlsplit(url).path, headers={"Accept": "text/event-stream"})
        self._reader = threading.Thread(target=self._read, args=(self._stream.getresponse(),), daemon=True)
        self._reader.start()
        name, address = self._event(PATIENCE)
        self._endpoint = urljoin(url, address)
        if name != "endpoint" or urlsplit(self._endpoint)[:2] != urlsplit(url)[:2]:
            raise DemoError(f"the server names no endpoint at {url}, but {address}")

    def open(self) -> None:
        """Hold the handshake."""
        self._answer(self._initialize(), PATIENCE)
        self.notify("notifications/initialized")

    def request(self, method: str, params: Json | None = None, patience: float = PATIENCE) -> Json | None:
        """Send a request and wait for its answer; None, and a cancel, if none comes in time."""
        request = self._message(method, params)
        answer = self._answer(request, patience)
        if answer is None:
            reason = f"no answer within {patience:g} s"
            self.notify("notifications/cancelled", {"requestId": request["id"], "reason": reason})
        return answer

    def notify(self, method: str, params: Json | None = None) -> None:
        """Send a notification."""
        message: Json = {"jsonrpc": "2.0", "method": method}
        self._post(self._endpoint, message if params is None else message | {"params": params})

    def close(self) -> None:
        """Leave: on this transport that is the end of both connections."""
        self._posts.close()
        if self._stream.sock is not None:
            self._stream.sock.shutdown(SHUT_RDWR)
            self._reader.join(PATIENCE)
        self._stream.close()

    def _initialize(self) -> Json:
        info = {"name": "mcpsniff-demo", "title": "Demo client", "version": "1.0.0"}
        return self._message("initialize", {"protocolVersion": REVISION, "capabilities": {}, "clientInfo": info})

    def _message(self, method: str, params: Json | None) -> Json:
        message: Json = {"jsonrpc": "2.0", "id": self._next_id, "method": method}
        self._next_id += 1
        return message if params is None else message | {"params": params}

    def _answer(self, request: Json, patience: float) -> Json | None:
        """Send a request; return its answer if that comes in time."""
        self._post(self._endpoint, request)
        deadline = time.monotonic() + patience
        while (left := deadline - time.monotonic()) > 0:
            name, data = self._event(left)
            if name != "message":
                continue
            try:
                message: Json = json.loads(data)
            except ValueError:
                continue
            if message.get("id") == request["id"]:
                return message
        return None

    def _post(self, url: str, message: Json) -> int:
        """Send a message; return the status of the answer."""
        parts = urlsplit(url)
        target = f"{parts.path}?{parts.query}" if parts.query else parts.path
        headers = {"Content-Type": "application/json", "Accept": ACCEPT}
        try:
            self._posts.request("POST", target, json.dumps(message, separators=(",", ":")), headers)
            response = self._posts.getresponse()
            response.read()
        except HTTPException as error:
            raise DemoError(f"{url} does not answer: {error!r}") from None
        return response.status

    def _connection(self) -> HTTPConnection:
        return HTTPConnection(urlsplit(self._url).netloc, timeout=PATIENCE)

    def _event(self, patience: float) -> tuple[str, str]:
        """The next event, as name and data; two empty texts if none comes in time."""
        try:
            return self._events.get(timeout=patience)
        except queue.Empty:
            return "", ""

    def _read(self, stream: HTTPResponse) -> None:
        for event in _events(stream):
            self._events.put(event)


def _events(stream: HTTPResponse) -> Iterator[tuple[str, str]]:
    """The events of a stream, as name and data."""
    name, data = "message", ""
    try:
        for line in stream:
            field, _, value = line.decode().rstrip("\n").partition(": ")
            if field == "event":
                name = value
            elif field == "data":
                data = value
            elif not field:
                yield name, data
                name, data = "message", ""
    except (OSError, HTTPException):  # closed, by us
        return


def hold_session(url: str) -> None:
    """Hold the demo's session with the server at ``url``.

    Raises DemoError when that does not do as it should, OSError when it cannot be reached.
    """
    client = SseClient(url)
    try:
        client.open()
        client.request("tools/list")
        for days, patience in ((1, PATIENCE), (7, SHORT_PATIENCE)):
            arguments = {"city": "Lisbon", "days": days}
            call = {"name": "forecast", "arguments": arguments, "_meta": {"progressToken": f"days-{days}"}}
            client.request("tools/call", call, patience)
    finally:
        client.close()
