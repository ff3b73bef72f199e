"""A quick server for the long runs of bench/http.py: Streamable HTTP as MCP 2025-11-25 has it.

    python bench/http_server.py        prints its port, and serves until it is ended

POST /mcp answers requests with JSON, notifications with 202; `initialize` begins a session. GET /mcp is a stream
on which nothing is said. DELETE /mcp ends a session.
"""

import asyncio
import json
import socket
import uuid

INFO = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "bench", "version": "1"}}


class Served(asyncio.Protocol):
    """One connection of a client."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (stop := self._buffer.find(b"\r\n\r\n")) >= 0:
            first, *lines = self._buffer[:stop].decode("latin-1").split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
            end = stop + 4 + int(headers.get("content-length", 0))
            if len(self._buffer) < end:
                return
            body = bytes(self._buffer[stop + 4 : end])
            del self._buffer[:end]
            self._answer(first.partition(" ")[0], body)

    def _answer(self, method: str, body: bytes) -> None:
        if method == "GET":
            stream = b"Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n8\r\n: open\n\n\r\n"
            self._transport.write(b"HTTP/1.1 200 OK\r\n" + stream)
        elif method == "DELETE":
            self._transport.write(b"HTTP/1.1 204 No Content\r\n\r\n")
        else:
            message = json.loads(body)
            if "id" in message:
                self._respond(message)
            else:
                self._transport.write(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")

    def _respond(self, request: dict[str, object]) -> None:
        session = ""
        result: dict[str, object] = {"content": [{"type": "text", "text": "r" * 110}], "isError": False}
        if request["method"] == "initialize":
            session, result = f"Mcp-Session-Id: {uuid.uuid4()}\r\n", dict(INFO)
        body = json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}, separators=(",", ":")).encode()
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n{session}\r\n"
        self._transport.write(head.encode() + body)


async def main() -> None:
    """Serve on a free port of loopback."""
    server = await asyncio.get_running_loop().create_server(Served, "127.0.0.1", 0, backlog=512)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
