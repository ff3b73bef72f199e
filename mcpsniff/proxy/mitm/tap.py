"""Writes down the HTTP exchanges that mitmproxy carries: an addon, whose taps are mitmproxy's streaming callbacks.

All bodies stream, so nothing waits for its end, and what a callback returns is what is sent on. mitmproxy loses a
piece whose callback raises, without a word. So every callback returns its argument on every path; what goes wrong in
between is said once on stderr, and the capture has a gap for those bytes.
"""

from collections.abc import Callable
from contextlib import suppress
from enum import Enum
from typing import Any, Final, Protocol

from mitmproxy.connection import Client
from mitmproxy.http import HTTPFlow, Message

from mcpsniff.proxy.answers import as_data
from mcpsniff.proxy.ends import CLIENT_CLOSED, SERVER_CLOSED, STOPPED, spelled
from mcpsniff.proxy.mitm.endings import client_hung_up
from mcpsniff.proxy.mitm.exchange import DIRECTIONS, REQUEST, RESPONSE, Records
from mcpsniff.proxy.mitm.remarks import after_body, before_response
from mcpsniff.proxy.mitm.start_lines import request_line, status_line
from mcpsniff.proxy.recorder import Recorder
from mcpsniff.proxy.say import say

HELD: Final = 64 << 10
"""Bytes of one exchange that are kept in memory while a judge has not decided."""
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


class Verdict(Enum):
    """Whether an exchange is to be recorded."""

    KEEP = "keep"
    DROP = "drop"
    WAIT = "wait"


class Judge(Protocol):
    """Decides which exchanges are recorded. If it fails, the exchange is not."""

    def begin(self, flow: HTTPFlow) -> Verdict:
        """Decide by the head of a request."""

    def more(self, flow: HTTPFlow, direction: str, data: bytes) -> Verdict:
        """Decide by one more piece of a body, after WAIT; ``direction`` is c2s or s2c.

        ``data`` is empty when the head of the response came and when a body is over. An exchange that ends, or of which
        `HELD` bytes are waiting, without a verdict is dropped.
        """


class Tap:
    """Notes into ``recorder`` what passes; ``judge`` decides what of it (None: all).

    The methods named like mitmproxy's hooks are to be called in its thread; none of them raises.
    """

    def __init__(self, recorder: Recorder, judge: Judge | None = None) -> None:
        self.recorder = recorder
        self.kept = self.dropped = 0
        """How many exchanges were recorded so far, and how many were passed on unrecorded."""
        self.progress = 0
        """How many times something was passed on."""
        self.defers = False
        """True if somebody else writes some exchanges down, who says so by `leave`."""
        self._judge = judge
        self._open: dict[str, _Exchange] = {}
        self._connections: dict[str, int] = {}
        self._channels = self._numbers = 0
        self._has_failed = False

    @property
    def is_waiting(self) -> bool:
        """True while the response to some request has not begun; from any thread."""
        return any(not exchange.has_response for exchange in list(self._open.values()))

    @property
    def connections(self) -> int:
        """How many connections of clients have had an exchange so far."""
        return self._numbers

    def next_connection(self) -> int:
        """Return the number of a connection of a client, at its first exchange."""
        return self._numbers

    def next_channel(self) -> int:
        """Return the number of a channel that begins."""
        number, self._channels = self._channels, self._channels + 1
        return number

    # -- hooks of mitmproxy ------------------------------------------------------------------------------------------

    def requestheaders(self, flow: HTTPFlow, **more: Any) -> None:
        """The head of a request is there; ``more`` is recorded of it, too."""
        flow.request.stream = True
        try:
            flow.request.stream = self._begin(flow, more).asked
        except Exception as error:  # noqa: BLE001 - whatever it is, the traffic goes on
            self.fail(None, REQUEST, 0, error)

    def request(self, flow: HTTPFlow) -> None:
        """A request is over."""
        self._over(flow, REQUEST)

    def responseheaders(self, flow: HTTPFlow) -> None:
        """The head of a response is there."""
        if flow.response is None:
            return
        flow.response.stream = True
        exchange = self._open.get(flow.id)
        if exchange is None:
            return
        exchange.has_response = True
        self.progress += 1
        flow.response.stream = exchange.answered
        try:
            exchange.records.open(RESPONSE, {"start": status_line(flow.response), **self._about(flow, flow.response)})
            exchange.remark(RESPONSE, before_response(flow))
            self._ask(exchange, RESPONSE, b"")
        except Exception as error:  # noqa: BLE001
            self.fail(exchange, RESPONSE, 0, error)

    def response(self, flow: HTTPFlow) -> None:
        """A response is over."""
        self._over(flow, RESPONSE)

    def error(self, flow: HTTPFlow) -> None:
        """An exchange has failed: one side hung up, the server was not reached, or we refused the request."""
        exchange = self._open.get(flow.id)
        if exchange is None:
            return
        try:
            if client_hung_up(flow):
                self._end(exchange, "reset", CLIENT_CLOSED, "aborted", CLIENT_CLOSED)
            else:
                self._end(exchange, "aborted", SERVER_CLOSED, "reset", SERVER_CLOSED)
        except Exception as error:  # noqa: BLE001
            self.fail(exchange, RESPONSE, 0, error)

    def client_disconnected(self, client: Client) -> None:
        """A client's connection is over: so is all that was going on there."""
        self._connections.pop(client.id, None)
        for exchange in [each for each in self._open.values() if each.client == client.id]:
            with suppress(Exception):
                self._end(exchange, "reset", CLIENT_CLOSED, "aborted", CLIENT_CLOSED)

    # -- what others have to say -------------------------------------------------------------------------------------

    def answered(self, flow: HTTPFlow, answer: bytes, why: str, told: dict[str, Any] | None = None) -> None:
        """The client gets ``answer``, a whole response of ours or of him ``told`` of, since ``why``.

        Its request may still go on.
        """
        exchange = self._open.get(flow.id)
        if exchange is None:
            return
        try:
            exchange.refused, exchange.has_response = why, True
            exchange.answer = {"start": 0, "length": 0, "data": as_data(answer), **(told or {"by": "mcpsniff"})}
            self._finish(exchange)
        except Exception as error:  # noqa: BLE001
            self.fail(exchange, RESPONSE, 0, error)

    def late(self, flow: HTTPFlow, data: bytes) -> None:
        """More of the body of a request that we have answered; empty: it is over."""
        exchange = self._open.get(flow.id)
        if exchange is None:
            return
        if data:
            exchange.asked(data)
        else:
            self._over(flow, REQUEST)

    def whole(self, flow: HTTPFlow, body: int) -> None:
        """A body is there to its end; what is put now is what becomes of it."""
        exchange = self._open.get(flow.id)
        if exchange is not None:
            exchange.records.close(body, "eof")

    def put(self, flow: HTTPFlow, body: int, kind: str, what: dict[str, Any]) -> None:
        """Record something else of a body, such as that its bytes leave changed: ``what`` is the record's body."""
        exchange = self._open.get(flow.id)
        if exchange is not None:
            exchange.records.put(kind, body, what)

    def missed(self, flow: HTTPFlow, why: str, *, is_request: bool) -> None:
        """A body passed that this was never given, since ``why``; if the judge waits for it, the rest is recorded."""
        exchange = self._open.get(flow.id)
        if exchange is not None:
            with suppress(Exception):
                if exchange.records.holds:
                    self.kept += 1
                    exchange.records.keep()
                exchange.records.put("gap", REQUEST if is_request else RESPONSE, {"bytes": 0, "why": why})

    def remark(self, text: str) -> None:
        """Write a sentence into the capture that belongs to no exchange."""
        with suppress(Exception):
            self.recorder.mark("comment", None, {"text": text, "by": "mcpsniff"})

    def verdict(self, flow: HTTPFlow) -> Verdict:
        """What was decided of an exchange that goes on so far."""
        exchange = self._open.get(flow.id)
        if exchange is None or exchange.records.is_dropped or exchange.refused:
            return Verdict.DROP
        return Verdict.WAIT if exchange.records.holds else Verdict.KEEP

    def judge(self, flow: HTTPFlow) -> Verdict:
        """Have it decided, now that the body of the request is over."""
        exchange = self._open.get(flow.id)
        if exchange is not None and exchange.records.holds:
            self._ask(exchange, REQUEST, b"")
        return self.verdict(flow)

    def leave(self, flow: HTTPFlow) -> None:
        """Somebody else writes this exchange down; here it is only judged and counted."""
        exchange = self._open.get(flow.id)
        if exchange is not None:
            exchange.records.leave()

    def over(self, flow: HTTPFlow, refused: str, *, is_recorded: bool) -> None:
        """An exchange is over; ``refused`` is why we have answered it ourselves, if we have. For those who count."""

    def stop(self) -> None:
        """Nothing more is carried, since mcpsniff ends."""
        for exchange in list(self._open.values()):
            with suppress(Exception):
                self._end(exchange, "aborted", STOPPED, "aborted", STOPPED)

    def fail(self, exchange: "_Exchange | None", body: int, lost: int, error: Exception) -> None:
        """Say that recording failed, once, and admit in the capture what is missing there."""
        if not self._has_failed:
            self._has_failed = True
            say(f"internal error while recording: {error!r}; the traffic goes on")
        with suppress(Exception):
            if exchange is None:
                if self._judge is None:  # else it may be one that nothing is to be told of
                    self.recorder.mark("gap", None, {"bytes": lost, "why": "internal"})
            else:
                exchange.records.put("gap", body, {"bytes": lost, "why": "internal"})

    # -- inside ------------------------------------------------------------------------------------------------------

    def piece(self, exchange: "_Exchange", body: int, data: bytes) -> None:
        """Note a piece of a body. Nothing is raised."""
        self.progress += 1
        try:
            exchange.records.note(body, data)
            if exchange.records.holds:
                self._ask(exchange, body, data)
        except Exception as error:  # noqa: BLE001
            self.fail(exchange, body, len(data), error)

    def _begin(self, flow: HTTPFlow, more: dict[str, Any]) -> "_Exchange":
        client = flow.client_conn.id
        conn = self._connections.get(client)
        if conn is None:
            conn = self._connections[client] = self.next_connection()
            self._numbers += 1
        records = Records(self.recorder, self, conn, holds=self._judge is not None, defers=self.defers)
        exchange = self._open[flow.id] = _Exchange(self, flow, records)
        self.progress += 1
        records.open(REQUEST, {"start": request_line(flow.request), **self._about(flow, flow.request), **more})
        if flow.request.headers.get("expect", "").lower() == "100-continue":
            exchange.remark(REQUEST, "100 (Continue) was said by the proxy, which does not wait for the server's")
        self._ask(exchange, REQUEST, None)
        return exchange

    def _ask(self, exchange: "_Exchange", body: int, data: bytes | None) -> None:
        """Let the judge decide, if it has not yet; ``data`` is None at the beginning."""
        records = exchange.records
        if not records.holds or self._judge is None:
            return
        try:
            if data is None:
                verdict = self._judge.begin(exchange.flow)
            else:
                verdict = self._judge.more(exchange.flow, DIRECTIONS[body], data)
        except Exception as error:  # noqa: BLE001 - what is not known to belong here is not written down
            self.fail(None, body, 0, error)
            verdict = Verdict.DROP
        if verdict is Verdict.KEEP:
            self.kept += 1
            records.keep()
        elif verdict is Verdict.DROP or records.size > HELD:
            self._drop(records)

    def _drop(self, records: Records) -> None:
        self.dropped += 1
        records.drop()

    def _over(self, flow: HTTPFlow, body: int) -> None:
        """A body is complete."""
        exchange = self._open.get(flow.id)
        if exchange is None:
            return
        self.progress += 1
        try:
            if exchange.records.holds:
                self._ask(exchange, body, b"")
            exchange.remark(body, after_body(flow, is_request=body == REQUEST))
            exchange.records.close(body, "eof")
            self._finish(exchange)
            self._settle(exchange)
        except Exception as error:  # noqa: BLE001
            self.fail(exchange, body, 0, error)

    def _finish(self, exchange: "_Exchange") -> None:
        """End an exchange that we have answered ourselves as soon as its request is over."""
        if exchange.refused and exchange.records.closed[REQUEST]:
            self._end(exchange, "", "", "", "")

    def _end(self, exchange: "_Exchange", asked: str, why_asked: str, answered: str, why: str) -> None:
        """Both bodies are over, each as it says, if it was not before; a response that never began has a channel, too.

        That is where it is told why there is none.
        """
        records = exchange.records
        if exchange.refused:
            asked, why_asked, answered, why = "aborted", exchange.refused, "eof", ""
        records.close(REQUEST, asked, why_asked)
        if not records.is_open(RESPONSE):
            records.open(RESPONSE, self._place(exchange.flow))
        if exchange.answer is not None:  # after the request, which tells to what
            records.put("rewrite", RESPONSE, exchange.answer)
        records.close(RESPONSE, answered, why)
        self._settle(exchange)

    def _settle(self, exchange: "_Exchange") -> None:
        """Forget an exchange that is over."""
        records = exchange.records
        if not all(records.closed) or self._open.pop(exchange.flow.id, None) is None:
            return
        if records.holds:
            self._drop(records)
        elif self._judge is None:
            self.kept += 1
        self.over(exchange.flow, exchange.refused, is_recorded=not records.is_dropped)

    def _about(self, flow: HTTPFlow, message: Message) -> dict[str, Any]:
        """What is recorded of a head, besides its start line."""
        fields = message.headers.fields
        headers = [[name.decode("latin-1"), value.decode("latin-1")] for name, value in fields]
        return {"headers": headers, **self._place(flow)}

    def _place(self, flow: HTTPFlow) -> dict[str, Any]:
        """Who talks to whom."""
        request, client, server = flow.request, flow.client_conn, flow.server_conn
        host = f"[{request.host}]" if ":" in request.host else request.host
        default = request.port == _DEFAULT_PORTS.get(request.scheme)
        place = {
            "authority": host if default else f"{host}:{request.port}",
            "scheme": request.scheme,
            "client": spelled(client.peername),
            "listen": spelled(client.sockname),
        }
        if server.peername is not None:
            place["server"] = spelled(server.peername)
        return place


class _Exchange:
    """One HTTP exchange that is going on."""

    __slots__ = ("answer", "answered", "asked", "client", "flow", "has_response", "records", "refused")

    def __init__(self, tap: Tap, flow: HTTPFlow, records: Records) -> None:
        self.flow = flow
        self.client = flow.client_conn.id
        self.records = records
        self.has_response = False
        self.refused = ""
        """Why we have answered it ourselves, if we have."""
        self.answer: dict[str, Any] | None = None
        """The body of the record of that answer."""
        self.asked = _callback(tap, self, REQUEST)
        self.answered = _callback(tap, self, RESPONSE)

    def remark(self, body: int, text: str) -> None:
        """Write a sentence beside a body, if there is one to write."""
        if text:
            self.records.put("comment", body, {"text": text, "by": "mcpsniff"})


def _callback(tap: Tap, exchange: _Exchange, body: int) -> Callable[[bytes], bytes]:
    """Return what mitmproxy calls with each piece of a body, and with nothing at its end."""

    def noted(data: bytes) -> bytes:
        if data:
            try:
                tap.piece(exchange, body, data)
            except Exception as error:  # noqa: BLE001
                with suppress(Exception):
                    tap.fail(exchange, body, len(data), error)
        return data

    return noted
