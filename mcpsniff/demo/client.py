"""The demo's MCP client: it starts a server's command, holds one short session of 2025-11-25 with it, and ends it.

Like most clients it skips what it cannot read, and gives up on a request that is not answered in time.
"""

import json
import queue
import subprocess
import threading
import time
from collections.abc import Sequence
from typing import IO, Any, Final

REVISION: Final = "2025-11-25"
PATIENCE: Final = 15.0
"""Seconds for an answer that will come."""
SHORT_PATIENCE: Final = 0.3
"""Seconds for the answer that the faulty tool never gives."""

type Json = dict[str, Any]


class DemoError(Exception):
    """The session did not go as it should; the text says how far it came."""


class Client:
    """A client of one server, over the pipes of a child process."""

    def __init__(self, command: Sequence[str]) -> None:
        self._child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self._lines: queue.Queue[bytes] = queue.Queue()
        self._next_id = 0
        threading.Thread(target=self._read, args=(self._child.stdout,), daemon=True).start()

    def request(self, method: str, params: Json | None = None, patience: float = PATIENCE) -> Json | None:
        """Send a request and wait for its answer; None, and a cancel, if none comes in time."""
        self._next_id += 1
        request_id = self._next_id
        message: Json = {"jsonrpc": "2.0", "id": request_id, "method": method}
        if params is not None:
            message["params"] = params
        self._send(message)
        deadline = time.monotonic() + patience
        while (left := deadline - time.monotonic()) > 0:
            answer = self._next(left)
            if answer is not None and type(answer.get("id")) is int and answer["id"] == request_id:
                return answer
        reason = f"no answer within {patience:g} s"
        self.notify("notifications/cancelled", {"requestId": request_id, "reason": reason})
        return None

    def notify(self, method: str, params: Json | None = None) -> None:
        """Send a notification."""
        message: Json = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            message["params"] = params
        self._send(message)

    def close(self) -> int:
        """Close the server's stdin and return its exit status."""
        assert self._child.stdin is not None
        self._child.stdin.close()
        try:
            return self._child.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._child.kill()
            return self._child.wait()

    def kill(self) -> None:
        """End the child at once."""
        self._child.kill()
        self._child.wait()

    def _next(self, patience: float) -> Json | None:
        """The next response; requests of the server are answered on the way, what is no message is skipped."""
        try:
            line = self._lines.get(timeout=patience)
        except queue.Empty:
            return None
        if not line:
            raise DemoError("the server closed its stdout before the session was over")
        try:
            message = json.loads(line)
        except ValueError:
            return None
        if message.get("method") == "roots/list":
            roots = [{"uri": "file:///home/demo/notes", "name": "notes"}]
            self._send({"jsonrpc": "2.0", "id": message["id"], "result": {"roots": roots}})
            return None
        return message if "method" not in message else None

    def _send(self, message: Json) -> None:
        assert self._child.stdin is not None
        try:
            self._child.stdin.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")
            self._child.stdin.flush()
        except BrokenPipeError:
            raise DemoError("the server went away before the session was over") from None

    def _read(self, stdout: IO[bytes]) -> None:
        for line in stdout:
            self._lines.put(line)
        self._lines.put(b"")


def hold_session(command: Sequence[str]) -> int:
    """Hold the demo's session with the server that ``command`` starts; return its exit status.

    Raises DemoError when the server goes away in the middle, OSError when it cannot be started.
    """
    client = Client(command)
    try:
        client.request(
            "initialize",
            {
                "protocolVersion": REVISION,
                "capabilities": {"roots": {"listChanged": True}},
                "clientInfo": {"name": "mcpsniff-demo", "title": "Demo client", "version": "1.0.0"},
            },
        )
        client.notify("notifications/initialized")
        client.request("tools/list")
        client.request("tools/call", {"name": "add", "arguments": {"a": 19, "b": 23}})
        search = {"name": "search", "arguments": {"pattern": "bread"}, "_meta": {"progressToken": "search-1"}}
        client.request("tools/call", search)
        client.request("tools/call", {"name": "open", "arguments": {"pattern": "taxes"}})
        client.request("tools/call", {"name": "forecast", "arguments": {}}, SHORT_PATIENCE)
        client.request("ping")
    except BaseException:
        client.kill()
        raise
    return client.close()
