"""The desk's side of attaching: one thread that serves whoever connects to the private socket, in lines of JSON.

To a client: first what session this is, ``{"pid": …, "labels": […], …}``, then each message that is held (see
`Held.facts`), then ``{"listed": NUMBER}``. From then on what comes, and ``{"gone": NUMBER, "how": …}`` for what goes.
From a client: ``{"ask": K, "do": …, "n": NUMBER, …}``; what comes back says ``{"re": K, …}``, with ``no`` and a
sentence where it could not be done. Nobody who waits here holds up traffic: what is to be told is queued.
"""

import json
import os
import select
import socket
from base64 import b64encode
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from threading import Thread
from typing import Any, Final

from mcpsniff.proxy.breaks.desk import Desk, Fact
from mcpsniff.proxy.breaks.orders import OrderError
from mcpsniff.proxy.breaks.peer import is_ourselves

LONGEST_ORDER: Final = 256 << 20
"""Bytes of an order: it may hold a message of 64 MiB, with escapes."""
MOST_UNREAD: Final = 256 << 20
"""Bytes that a client may leave unread before it is let go."""
_GOODBYE: Final = 0.5
"""Seconds that the end waits for what was still to be told."""


class _Client:
    """Somebody who is attached."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.unread = bytearray()
        """What is still to be written."""
        self.taken: list[bytes] = []
        """Pieces of an order whose end has not come."""
        self.size = 0


class Service:
    """Serves ``desk`` on ``listener``, which is at ``path``; ``describe`` tells about the session."""

    def __init__(self, desk: Desk, listener: socket.socket, path: str, describe: Callable[[], Fact]) -> None:
        self.path = path
        self.attached = 0
        """How many are attached."""
        self._desk = desk
        self._listener = listener
        self._describe = describe
        self._clients: dict[int, _Client] = {}
        self._news: deque[Fact] = deque()
        self._poll = select.poll()
        self._waking, self._waker = os.pipe()
        os.set_blocking(self._waker, False)
        os.set_blocking(self._waking, False)
        self._is_over = False
        self._thread = Thread(target=self._run, name="desk", daemon=True)

    def start(self) -> None:
        """Begin to serve. Those who have connected before are served now."""
        self._desk.look_on(self.tell)
        self._thread.start()

    def stop(self) -> None:
        """End: nobody finds us any more, and those who are attached see the end of their connection."""
        with suppress(OSError):
            os.unlink(self.path)
        if not self._thread.is_alive():
            self._listener.close()
            return
        self._is_over = True
        self._wake()
        self._thread.join(_GOODBYE)

    def tell(self, fact: Fact) -> None:
        """Let those who are attached know of it. For any thread."""
        self._news.append(fact)
        self._wake()

    def _wake(self) -> None:
        with suppress(OSError):  # it is full: then it wakes anyway
            os.write(self._waker, b"!")

    # -- in the thread ---------------------------------------------------------------------------------------------

    def _run(self) -> None:
        self._poll.register(self._listener, select.POLLIN)
        self._poll.register(self._waking, select.POLLIN)
        while not self._is_over:
            for descriptor, _ in self._poll.poll():
                if descriptor == self._waking:
                    with suppress(BlockingIOError):
                        os.read(self._waking, 4096)
                elif descriptor == self._listener.fileno():
                    self._accept()
                elif descriptor in self._clients:
                    self._serve(self._clients[descriptor])
            self._spread()
        self._spread()
        for client in list(self._clients.values()):
            self._let_go(client)
        self._listener.close()

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError:  # it is gone again, or there are no descriptors left
            return
        if not is_ourselves(connection):
            connection.close()
            return
        connection.setblocking(False)
        self._spread()  # what it is to be told from now on comes after what is held now
        client = self._clients[connection.fileno()] = _Client(connection)
        self._poll.register(connection, select.POLLIN)
        self.attached += 1
        held = [one.facts() for one in self._desk.held() if one.decision is None]
        self._put(client, {**self._describe(), "on": self._desk.is_on}, *held, {"listed": len(held)})

    def _spread(self) -> None:
        """Tell all clients the news."""
        while self._news:
            fact = self._news.popleft()
            for client in list(self._clients.values()):
                self._put(client, fact)

    def _put(self, client: _Client, *facts: Fact) -> None:
        client.unread += "".join([json.dumps(fact) + "\n" for fact in facts]).encode()  # ASCII, whatever was captured
        self._write(client)

    def _write(self, client: _Client) -> None:
        try:
            sent = client.connection.send(client.unread) if client.unread else 0
        except BlockingIOError:
            sent = 0
        except OSError:
            self._let_go(client)
            return
        del client.unread[:sent]
        if len(client.unread) > MOST_UNREAD:
            self._let_go(client)
            return
        self._poll.modify(client.connection, select.POLLIN | (select.POLLOUT if client.unread else 0))

    def _serve(self, client: _Client) -> None:
        if client.unread:
            self._write(client)
        try:
            data = client.connection.recv(1 << 16)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        client.size += len(data)
        if not data or client.size > LONGEST_ORDER:
            self._let_go(client)
            return
        client.taken.append(data)
        if b"\n" not in data:
            return
        *orders, rest = b"".join(client.taken).split(b"\n")
        client.taken, client.size = [rest], len(rest)
        for order in orders:
            if client.connection.fileno() >= 0:
                self._put(client, self._carried_out(order))

    def _let_go(self, client: _Client) -> None:
        descriptor = client.connection.fileno()
        if descriptor >= 0:
            self._poll.unregister(descriptor)
            self._clients.pop(descriptor, None)
            client.connection.close()
            self.attached -= 1

    def _carried_out(self, text: bytes) -> dict[str, Any]:
        """Carry out an order, and return what is to be said of it."""
        try:
            order = json.loads(text)
        except (ValueError, RecursionError):
            order = None
        if not isinstance(order, dict):
            return {"re": None, "no": "that is no order"}
        try:
            return {"re": order.get("ask"), **self._done(order)}
        except OrderError as error:
            return {"re": order.get("ask"), "no": str(error)}
        except Exception as error:  # noqa: BLE001 - a bug of ours; the others are still to be served
            return {"re": order.get("ask"), "no": f"internal error: {error!r}"}

    def _done(self, order: Mapping[str, Any]) -> dict[str, Any]:
        desk, what = self._desk, order.get("do")
        if what in ("off", "on"):
            desk.is_on = what == "on"
            self.tell({"on": desk.is_on})
            return {"done": f"turned {what}", "passed": 0 if desk.is_on else desk.pass_all()}
        if what == "pass all":
            return {"done": "passed", "passed": desk.pass_all()}
        number = order.get("n")
        if type(number) is not int:
            raise OrderError("that is no number of a message")
        if what == "show":
            raw = desk.text(number)
            try:
                return {"text": raw.decode()}
            except UnicodeDecodeError:
                return {"b64": b64encode(raw).decode()}
        return {"done": desk.decide(number, order)}
