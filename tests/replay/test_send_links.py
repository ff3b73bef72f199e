"""The ways over HTTP to a live server: sessions, versions, streams that are cut, redirects, refusals, old servers."""

import asyncio
import json
import socket
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from mcpsniff.replay.send.headers import given_headers, recorded_headers
from mcpsniff.replay.send.http import HttpLink
from mcpsniff.replay.send.link import Came, Refusal, Sent, UnreachableError, said
from mcpsniff.replay.send.links import EitherLink, Where, link_to
from tests.mitm.certificates import Authority

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}},
}
AGREED = {"jsonrpc": "2.0", "id": 0, "result": {"protocolVersion": "2025-06-18", "capabilities": {}}}
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
PONG = {"jsonrpc": "2.0", "id": 1, "result": {}}

type Answer = Callable[[web.Request, Any], Awaitable[web.StreamResponse]]


class Ear:
    def __init__(self) -> None:
        self.came: list[Came] = []
        self.refusals: list[Refusal] = []
        self.ends: list[str] = []
        self.news = asyncio.Event()

    def heard(self, came: Came) -> None:
        self.came.append(came)
        self.news.set()

    def refused(self, refusal: Refusal) -> None:
        self.refusals.append(refusal)
        self.news.set()

    def accepted(self, sent: Sent, status: int) -> None:
        pass

    def wrote(self, text: str) -> None:
        raise AssertionError(text)

    def ended(self, why: str) -> None:
        self.ends.append(why)
        self.news.set()

    async def next(self) -> None:
        async with asyncio.timeout(10):
            await self.news.wait()
        self.news.clear()


def text(message: Any, headers: tuple[tuple[str, str], ...] | None = None) -> Sent:
    data = json.dumps(message).encode()
    return Sent(data, said(data), headers)


def events(*blocks: str) -> web.Response:
    return web.Response(text="".join(f"{block}\n\n" for block in blocks), content_type="text/event-stream")


def data(message: Any) -> str:
    return f"data: {json.dumps(message)}"


class Place:
    """A server on a free port, and what it was asked."""

    def __init__(self, answer: Answer) -> None:
        self.asked: list[tuple[str, str, dict[str, str], Any]] = []
        self._answer = answer
        self.origin = ""

    async def __aenter__(self) -> "Place":
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._serve)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.origin = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        message = json.loads(body) if body else None
        self.asked.append(
            (request.method, request.path_qs, {k.lower(): v for k, v in request.headers.items()}, message)
        )
        return await self._answer(request, message)


def holding(answer: Answer, act: Callable[[Place, Ear], Awaitable[None]]) -> Place:
    async def run() -> Place:
        async with Place(answer) as place:
            await act(place, Ear())
            return place

    return asyncio.run(run())


async def streamable(request: web.Request, message: Any) -> web.StreamResponse:
    if request.method != "POST":
        return web.Response(status=405 if request.method == "GET" else 200)
    if message.get("method") == "initialize":
        return web.json_response(AGREED, headers={"Mcp-Session-Id": "S-1"})
    return web.Response(status=202) if "id" not in message else events(": hi", data(PONG))


def test_the_session_and_the_version_are_those_of_the_live_server() -> None:
    recorded = (("Accept", "text/event-stream, application/json"), ("MCP-Protocol-Version", "2025-11-25"))
    recorded += (("Mcp-Session-Id", "old"), ("X-Tenant", "a"), ("Authorization", "Bearer mine"), ("Cookie", "a=b"))

    async def act(place: Place, ear: Ear) -> None:
        link = HttpLink(f"{place.origin}/mcp?k=v", ear, given=[("X-Key", "given")])
        link.recorded_version = "2025-11-25"
        await link.open()
        await link.send(text(INITIALIZE))
        await ear.next()
        await link.send(text({"jsonrpc": "2.0", "method": "notifications/initialized"}))
        await link.listen()
        assert link.listening == 405
        await link.send(text(PING, recorded))
        await ear.next()
        await link.close()
        assert [came.message.id for came in ear.came] == ["0", "1"]

    asked = holding(streamable, act).asked
    assert [(method, path) for method, path, *_ in asked] == [
        (method, "/mcp?k=v") for method in ("POST", "POST", "GET", "POST", "DELETE")
    ]
    first, second, get, ping, delete = (headers for _, _, headers, _ in asked)
    assert "mcp-session-id" not in first
    for headers in (second, get, ping, delete):
        assert (headers["mcp-session-id"], headers["mcp-protocol-version"]) == ("S-1", "2025-06-18")
    assert all(headers["x-key"] == "given" for headers in (first, second, get, ping, delete))
    assert (ping["accept"], ping["x-tenant"]) == ("text/event-stream, application/json", "a")
    assert not {"authorization", "cookie"} & set(ping)


def test_what_a_client_did_wrong_with_its_headers_it_does_again() -> None:
    async def act(place: Place, ear: Ear) -> None:
        link = HttpLink(f"{place.origin}/mcp", ear)
        link.recorded_version = "2025-11-25"
        link.ends_session = False
        await link.open()
        await link.send(text(INITIALIZE))
        await ear.next()
        await link.send(text(PING, (("Accept", "*/*"), ("MCP-Protocol-Version", "1999-01-01"))))
        await ear.next()
        await link.close()

    asked = holding(streamable, act).asked
    assert [method for method, *_ in asked] == ["POST", "POST"]
    headers = asked[1][2]
    assert headers["mcp-protocol-version"] == "1999-01-01"
    assert headers["accept"] == "*/*"
    assert "mcp-session-id" not in headers


def test_a_stream_that_is_cut_is_resumed_where_it_was_cut() -> None:
    async def answer(request: web.Request, message: Any) -> web.StreamResponse:
        if request.method == "GET":
            named = request.headers["Last-Event-ID"]
            return events("id: e2\nretry: 1\ndata:") if named == "e1" else events(f"id: e3\n{data(PONG)}")
        return events("retry: 1", "id: e1\ndata:")

    async def act(place: Place, ear: Ear) -> None:
        link = HttpLink(f"{place.origin}/mcp", ear)
        await link.open()
        await link.send(text(PING))
        await ear.next()
        await link.close()
        assert [came.message.id for came in ear.came] == ["1"]
        assert not ear.refusals

    asked = holding(answer, act).asked
    assert [headers.get("last-event-id") for _, _, headers, _ in asked] == [None, "e1", "e2"]


@pytest.mark.parametrize(
    ("answer", "status", "why"),
    [
        (lambda: web.Response(status=401, text="who are \x1b[2Jyou"), 401, "answered 401: who are \x1b[2Jyou"),
        (lambda: web.Response(status=200), 200, "gave no answer"),
        (lambda: web.json_response({"jsonrpc": "2.0", "id": 9, "result": {}}), 200, "gave another answer"),
        (lambda: events(": bye"), 200, "ended the stream without an answer"),
        (
            lambda: web.json_response({"error": "invalid_token"}, status=401),
            401,
            'answered 401: {"error": "invalid_token"}',
        ),
        (
            lambda: web.Response(status=302, headers={"Location": "//h/?key=SECRET"}),
            302,
            "answered 302: a redirect to http://h/?key=***, not followed: another server, which gets nothing of this",
        ),
        (
            lambda: web.Response(status=307, headers={"Location": "http://o.test/"}),
            307,
            "answered 307: a redirect to http://o.test/, not followed: another server, which gets nothing of this",
        ),
    ],
)
def test_a_request_without_an_answer_is_told_at_once_and_why(
    answer: Callable[[], web.Response], status: int, why: str
) -> None:
    async def act(place: Place, ear: Ear) -> None:
        link = HttpLink(f"{place.origin}/mcp", ear)
        await link.open()
        await link.send(text(PING))
        while not ear.refusals:
            await ear.next()
        await link.close()
        (refusal,) = ear.refusals
        assert (refusal.status, refusal.why) == (status, why)

    async def reply(_request: web.Request, _message: Any) -> web.StreamResponse:
        return answer()

    holding(reply, act)


def test_a_redirect_within_the_server_is_followed_with_the_body() -> None:
    async def answer(request: web.Request, message: Any) -> web.StreamResponse:
        if request.path == "/mcp":
            return web.Response(status=307, headers={"Location": "/mcp/"})
        return await streamable(request, message)

    async def act(place: Place, ear: Ear) -> None:
        link = HttpLink(f"{place.origin}/mcp", ear)
        await link.open()
        await link.send(text(PING))
        await ear.next()
        await link.close()
        assert ear.came[0].message.id == "1"

    asked = holding(answer, act).asked
    assert [(path, message) for _, path, _, message in asked] == [("/mcp", PING), ("/mcp/", PING)]


class OldServer:
    """HTTP+SSE; Streamable HTTP is refused with this status."""

    def __init__(self, status: int, endpoint: str = "/messages?sessionId=1") -> None:
        self._status = status
        self._endpoint = endpoint
        self._queue: asyncio.Queue[Any] = asyncio.Queue()

    async def __call__(self, request: web.Request, message: Any) -> web.StreamResponse:
        if request.method == "POST":
            if request.path != "/messages":
                return web.Response(status=self._status, text="no")
            self._queue.put_nowait({"jsonrpc": "2.0", "id": message["id"], "result": {}})
            return web.Response(status=202, text="Accepted")
        stream = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await stream.prepare(request)
        await stream.write(f"event: endpoint\ndata: {self._endpoint}\n\n".encode())
        while True:
            said_now = await self._queue.get()
            if said_now["id"] == "end":
                return stream
            await stream.write(
                f"id: 7\ndata:\n\nevent: message\n{data(said_now)}\n\n".encode()
            )  # first a priming event


@pytest.mark.parametrize("status", [400, 404, 405])
@pytest.mark.parametrize(("path", "posts_before"), [("/sse", 0), ("/any", 1)])
def test_an_old_server_is_found_at_any_address(path: str, posts_before: int, status: int) -> None:
    async def act(place: Place, ear: Ear) -> None:
        link = link_to(Where(f"{place.origin}{path}"), ear)
        await link.open()
        await link.send(text(INITIALIZE))
        await ear.next()
        await link.send(text(PING))
        await ear.next()
        assert link.transport == "sse"
        await link.send(text({"jsonrpc": "2.0", "id": "end", "method": "ping"}))
        await ear.next()
        await link.close()
        assert [came.message.id for came in ear.came] == ["0", "1"]
        assert ear.ends == ["ended the stream, and with it the session"]
        assert not ear.refusals

    asked = holding(OldServer(status), act).asked
    before = [(method, where) for method, where, *_ in asked[: posts_before + 1]]
    assert before == [("POST", path)] * posts_before + [("GET", path)]


def test_an_endpoint_of_another_server_is_not_spoken_to() -> None:
    async def act(place: Place, ear: Ear) -> None:
        link = link_to(Where(f"{place.origin}/sse"), ear, timeout=0.3)
        await link.open()
        assert isinstance(link, EitherLink)
        await link.send(text(PING))
        await ear.next()
        assert ear.refusals[0].status == 405
        await link.close()

    asked = holding(OldServer(405, "http://other.test/messages"), act).asked
    assert {path for _, path, *_ in asked} == {"/sse"}


def test_a_new_server_at_an_address_that_looks_old_is_spoken_to_as_it_is() -> None:
    async def act(place: Place, ear: Ear) -> None:
        link = link_to(Where(f"{place.origin}/sse"), ear, prefers_sse=True)
        await link.open()
        await link.send(text(INITIALIZE))
        await ear.next()
        assert link.transport == "http"
        await link.close()

    holding(streamable, act)


def test_a_refusal_that_any_server_may_have_is_no_sign_of_an_old_one() -> None:
    async def answer(_request: web.Request, _message: Any) -> web.StreamResponse:
        error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "no"}}
        return web.json_response(error, status=400)

    async def act(place: Place, ear: Ear) -> None:
        link = link_to(Where(f"{place.origin}/mcp"), ear)
        await link.open()
        await link.send(text(PING))
        await ear.next()
        assert ear.came[0].message.kind == "error"
        assert ear.came[0].sent is not None
        await link.close()

    assert [method for method, *_ in holding(answer, act).asked] == ["POST"]


def test_what_is_no_tls_and_what_is_not_trusted_is_said(tmp_path: Path) -> None:
    issued = Authority(tmp_path).issue()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(issued)

    async def reached(url: str) -> str:
        ear = Ear()
        link = link_to(Where(url), ear)
        await link.open()
        try:
            await link.send(text(PING))
        except UnreachableError as error:
            return str(error)
        finally:
            await link.close()
        return ear.refusals[0].why

    async def act() -> None:
        async def hello(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
            writer.close()

        plain = await asyncio.start_server(hello, "127.0.0.1", 0)
        safe = await asyncio.start_server(hello, "127.0.0.1", 0, ssl=context)
        ports = [server.sockets[0].getsockname()[1] for server in (plain, safe)]
        assert f"nobody speaks TLS there; http://127.0.0.1:{ports[0]}/mcp may be" in await reached(
            f"https://127.0.0.1:{ports[0]}/mcp"
        )
        told = await reached(f"https://127.0.0.1:{ports[1]}/mcp")
        assert "its certificate is not trusted: " in told
        assert "SSL_CERT_FILE" in told
        for server in (plain, safe):
            server.close()

    asyncio.run(act())


def test_no_secret_of_a_url_is_shown() -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{nobody.getsockname()[1]}"
        for path in ("mcp", "sse"):
            url = f"http://anna:EX-pw@{place}/{path}?api_key=EX-key"

            async def act(url: str = url) -> None:
                link = link_to(Where(url), Ear())
                try:
                    await link.open()
                    await link.send(text(PING))
                finally:
                    await link.close()

            with pytest.raises(UnreachableError, match=r"cannot reach http://\*\*\*@.*api_key=\*\*\*: ") as raised:
                asyncio.run(act())
            assert "EX-" not in str(raised.value)


def test_a_stream_that_breaks_off_is_told_although_the_server_has_one_of_its_own() -> None:
    async def answer(request: web.Request, message: Any) -> web.StreamResponse:
        if request.method == "GET":
            stream = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
            await stream.prepare(request)
            await asyncio.sleep(20)
            return stream
        if message.get("method") == "ping":
            return events(": no answer")
        return await streamable(request, message)

    async def act(place: Place, ear: Ear) -> None:
        link = HttpLink(f"{place.origin}/mcp", ear)
        await link.open()
        await link.listen()
        await link.send(text(PING))
        while not ear.refusals:
            await ear.next()
        assert ear.refusals[0].why == "ended the stream without an answer"
        await link.close()

    holding(answer, act)


@pytest.mark.parametrize(("statuses", "gets"), [((405, 405), 1), ((400, 200), 2), ((200, 200), 1)], ids=str)
def test_the_servers_own_stream_is_asked_for_once_more_only_if_it_was_refused(
    statuses: tuple[int, ...], gets: int
) -> None:
    """A server may let nobody listen before it heard that the client is ready; a 405 is its last word."""
    left = list(statuses)

    async def answer(request: web.Request, message: Any) -> web.StreamResponse:
        if request.method != "GET":
            return await streamable(request, message)
        if (status := left.pop(0)) != 200:
            return web.Response(status=status)
        stream = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await stream.prepare(request)
        await asyncio.sleep(20)
        return stream

    async def act(place: Place, ear: Ear) -> None:
        link = HttpLink(f"{place.origin}/mcp", ear)
        await link.open()
        await link.listen()
        await link.listen()
        assert link.listening == statuses[gets - 1]
        await link.close()

    assert [method for method, *_ in holding(answer, act).asked] == ["GET"] * gets


@pytest.mark.parametrize("url", ["http://[::1", "http://"])
def test_an_address_that_is_none_is_said(url: str) -> None:
    async def act() -> None:
        link = link_to(Where(url), Ear())
        await link.open()
        try:
            await link.send(text(PING))
        finally:
            await link.close()

    with pytest.raises(UnreachableError, match=r"cannot reach .*: that is no URL"):
        asyncio.run(act())


def test_modern_requests_are_routed_by_their_headers() -> None:
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
    call = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "w\u00e9", "arguments": {}, "_meta": meta},
    }

    async def act(place: Place, ear: Ear) -> None:
        link = HttpLink(f"{place.origin}/mcp", ear)
        await link.open()
        await link.send(text(call))
        await ear.next()
        await link.close()

    (asked,) = holding(streamable, act).asked
    headers = asked[2]
    assert headers["mcp-protocol-version"] == "2026-07-28"
    assert headers["mcp-method"] == "tools/call"
    assert headers["mcp-name"] == "=?base64?d8Op?="


def test_no_credential_of_a_capture_is_sent_again() -> None:
    kept = [("Accept", "*/*"), ("X-Tenant", "t"), ("Mcp-Method", "ping")]
    gone = [("Authorization", "Bearer x"), ("X-Api-Key", "k"), ("Cookie", "c"), ("X-Odd", "***"), ("Host", "h")]
    assert recorded_headers([*gone, *kept, ("X-Bad", "a\rb"), ("Bad Name", "v")]) == kept
    assert given_headers(["Authorization: Bearer a:b"]) == [("Authorization", "Bearer a:b")]
