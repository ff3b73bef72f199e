"""Conversations over HTTP: what their servers answer, and what their clients send, byte for byte."""

import json
import threading
from collections.abc import Callable
from typing import Any, Protocol

from tests.importers.talk import INITIALIZE, RESULT, SECRET, SESSION, event, said
from tests.proxy.relayed import EVENTS, JSON, Peer, answer, chunk, get, post

type Headers = tuple[str, ...]


class Talk(Protocol):
    """One conversation."""

    def serve(self, peer: Peer) -> None:
        """Play the server on a connection."""

    def talk(self, connect: Callable[[], Peer], host: str) -> None:
        """Play the client; ``host`` is the server's."""


OPENED = (f"Mcp-Session-Id: {SESSION}", "MCP-Protocol-Version: 2025-11-25")
USUAL = (
    "Content-Type: application/json",
    "Accept: application/json, text/event-stream",
    f"Authorization: Bearer {SECRET}",
)
STREAM = EVENTS + b"Transfer-Encoding: chunked\r\n\r\n"


class Streamable:
    """A server of Streamable HTTP with faults, and a client of it with others."""

    def __init__(self) -> None:
        self.listens = threading.Event()
        self.pinged = threading.Event()

    def serve(self, peer: Peer) -> None:
        while True:
            head, body = peer.next_message()
            if head.method == "GET":
                peer.send(STREAM, chunk(b"retry: 500\nid: 1\ndata:\n\n"))
                self.listens.set()
                self.pinged.wait(5)
                peer.send(chunk(event(id=7, method="ping")), chunk(b": alive\n\n"))
                peer.read()
                return
            self._answer(peer, json.loads(body) if body.endswith(b"}") else {})

    def _answer(self, peer: Peer, message: dict[str, Any]) -> None:
        method = message.get("method")
        if method == "initialize":
            peer.send(
                answer(said(id=message["id"], result=RESULT), JSON.decode().strip(), f"Mcp-Session-Id: {SESSION}")
            )
        elif method == "tools/list":
            peer.send(STREAM, chunk(event(id=message["id"], result={"tools": []})), chunk(b""))
        elif method == "tools/call":
            progress = event(method="notifications/progress", params={"progressToken": "unknown", "progress": 1})
            peer.send(STREAM, chunk(progress), chunk(b"data: not json\n\n"))
            peer.send(chunk(event(id=99, result={})), chunk(event(id=message["id"], error={"code": "x"})), chunk(b""))
        elif message:
            peer.send(answer(status="202 Accepted"))
        else:
            peer.send(answer(b"hello", "Content-Type: text/plain", status="404 Not Found"))

    def talk(self, connect: Callable[[], Peer], host: str) -> None:
        with connect() as posts, connect() as listens:
            posts.send(post(said(id=0, method="initialize", params=INITIALIZE), *USUAL))
            posts.next_message()
            for body in (said(method="notifications/initialized"), said(id="a", method="tools/list")):
                posts.send(post(body, *USUAL, *OPENED))
                posts.next_message()
            listens.send(get("/mcp", *USUAL, *OPENED))
            assert self.listens.wait(5)
            listens.read_until(b"id: 1\n")
            self.pinged.set()
            listens.read_until(b": alive")
            for body in (
                said(id=7, result={}),
                said(id="a", method="tools/call", params={"name": "x", "_meta": {"progressToken": 1}}),
                b'{"jsonrpc":"2.0","method":"notifications/x"',
            ):
                posts.send(post(body, *USUAL, *OPENED))
                posts.next_message()


class Legacy:
    """A server of HTTP with SSE, and a client of it."""

    def __init__(self) -> None:
        self._stream: Peer | None = None

    def serve(self, peer: Peer) -> None:
        while True:
            head, body = peer.next_message()
            if head.method == "GET":
                peer.send(STREAM, chunk(b"event: endpoint\ndata: /messages?sessionId=4f0c\n\n"))
                self._stream = peer
                peer.read()
                return
            peer.send(answer(b"Accepted", status="202 Accepted"))
            message = json.loads(body)
            assert self._stream is not None
            if message.get("method") == "initialize":
                result = {**RESULT, "protocolVersion": "2024-11-05"}
                self._stream.send(chunk(event(id=message["id"], result=result)))
            elif "id" in message:
                self._stream.send(chunk(event(id=message["id"], result={"tools": [{"name": "a"}]})))

    def talk(self, connect: Callable[[], Peer], host: str) -> None:
        with connect() as posts, connect() as stream:
            stream.send(get("/sse"))
            stream.read_until(b"sessionId")
            opening = {**INITIALIZE, "protocolVersion": "2024-11-05"}
            for body, awaited in (
                (said(id=0, method="initialize", params=opening), b'"id": 0'),
                (said(method="notifications/initialized"), b""),
                (said(id=1, method="tools/list"), b'"id": 1'),
            ):
                posts.send(post(body, *USUAL, target="/messages?sessionId=4f0c"))
                posts.next_message()
                stream.read_until(awaited)


class Scripted:
    """Requests with their answers, on one connection: all revisions, resumption, refusals, ends of sessions, OAuth."""

    def __init__(self) -> None:
        self._steps: list[tuple[bytes, tuple[bytes, ...]]] = []
        self._served = 0

    def serve(self, peer: Peer) -> None:
        while True:
            peer.next_message()
            self._served += 1
            peer.send(*self._steps[self._served - 1][1])

    def talk(self, connect: Callable[[], Peer], host: str) -> None:
        for revision in ("2025-03-26", "2025-06-18", "2025-11-25"):
            self._session(revision, host)
        self._modern(host)
        self._authorize(host)
        with connect() as peer:
            for request, _ in self._steps:
                peer.send(request)
                peer.next_message()
        assert self._served == len(self._steps) > 40

    def _post(
        self, host: str, body: bytes, *answers: bytes, headers: tuple[str, ...] = (), target: str = "/mcp"
    ) -> None:
        self._steps.append((post(body, *USUAL[:2], *headers, target=target, host=host), answers))

    def _get(self, host: str, target: str, *answers: bytes, headers: Headers = ()) -> None:
        self._steps.append((get(target, *headers, host=host), answers))

    def _session(self, revision: str, host: str) -> None:
        """A session from its beginning to its DELETE, and beyond."""
        session = f"Mcp-Session-Id: of-{revision}-{SESSION}"
        usual = (session, f"MCP-Protocol-Version: {revision}")
        opening, result = {**INITIALIZE, "protocolVersion": revision}, {**RESULT, "protocolVersion": revision}
        self._post(
            host, said(id=0, method="initialize", params=opening), json_answer(said(id=0, result=result), session)
        )
        self._post(host, said(method="notifications/initialized"), answer(status="202 Accepted"), headers=usual)
        batch = [
            said(id=1, method="tools/list"),
            said(id=2, method="ping"),
            said(method="notifications/roots/list_changed"),
        ]
        both = [said(id=2, result={}), said(id=1, result={"tools": []})]
        self._post(host, listed(batch), json_answer(listed(both)), headers=usual)
        call = said(id=5, method="tools/call", params={"name": "x", "_meta": {"progressToken": 5}})
        progress = event(method="notifications/progress", params={"progressToken": 5, "progress": 1})
        asks = event(id="s1", method="sampling/createMessage", params={"messages": [], "maxTokens": 1})
        stream = (chunk(b"id: e1\ndata:\n\n"), chunk(b"id: e2\n" + progress), chunk(b"id: e3\n" + asks), chunk(b""))
        self._post(host, call, STREAM, *stream, headers=usual)
        self._post(
            host, said(id="s1", error={"code": -1, "message": "no"}), answer(status="202 Accepted"), headers=usual
        )
        last = event(id=5, result={"content": [{"type": "text", "text": "天气"}]})
        resumed = (chunk(b"id: e3\n" + asks), chunk(b": still there\n\n"), chunk(b"id: e4\n" + last), chunk(b""))
        self._get(host, "/mcp", STREAM, *resumed, headers=(*usual, "Last-Event-ID: e2"))
        self._get(host, "/mcp", answer(b"", "Allow: POST", status="405 Method Not Allowed"), headers=usual)
        failed = said(id=6, error={"code": -32602, "message": "unknown tool"})
        self._post(host, said(id=6, method="tools/call", params={"name": "y"}), json_answer(failed), headers=usual)
        unread = said(id=None, error={"code": -32700, "message": "parse error"})
        self._post(host, b'{"jsonrpc"', json_answer(unread, status="400 Bad Request"), headers=usual)
        self._post(host, b"[]", answer(b"<p>no", "Content-Type: text/html", status="500 Oops"), headers=usual)
        request = f"DELETE /mcp HTTP/1.1\r\nHost: {host}\r\n{'\r\n'.join(usual)}\r\n\r\n"
        self._steps.append((request.encode(), (answer(),)))
        gone = said(id=None, error={"code": -32001, "message": "no such session"})
        self._post(host, said(id=7, method="ping"), json_answer(gone, status="404 Not Found"), headers=usual)

    def _modern(self, host: str) -> None:
        """2026-07-28: no sessions, and all that is known in each request."""
        meta = {f"io.modelcontextprotocol/{name}": value for name, value in MODERN.items()}
        for number, (method, params, answers) in enumerate(modern_calls(), 100):
            body = said(id=number, method=method, params={**params, "_meta": meta})
            names = (f"Mcp-Name: {params['name']}",) if "name" in params else ()
            headers = ("MCP-Protocol-Version: 2026-07-28", f"Mcp-Method: {method}", *names)
            self._post(host, body, *answers(number), headers=headers)
        wrong = said(id=200, error={"code": -32020, "message": "the header is another"})
        body = said(id=200, method="tools/list", params={"_meta": meta})
        headers = ("MCP-Protocol-Version: 2026-07-28", "Mcp-Method: tools/call")
        self._post(host, body, json_answer(wrong, status="400 Bad Request"), headers=headers)

    def _authorize(self, host: str) -> None:
        """From the refusal to the token and what it opens."""
        url = f"http://{host}"
        place = f"{url}/.well-known/oauth-protected-resource/closed"
        opening = said(id=0, method="initialize", params=INITIALIZE)
        challenge = f'WWW-Authenticate: Bearer resource_metadata="{place}"'
        self._post(host, opening, answer(b"", challenge, status="401 Unauthorized"), target="/closed")
        self._get(host, place.removeprefix(url), document(resource=f"{url}/closed", authorization_servers=[url]))
        names = {name: f"{url}/{name.partition('_')[0]}" for name in ("authorization_endpoint", "token_endpoint")}
        names |= {"registration_endpoint": f"{url}/register", "issuer": url}
        self._get(
            host,
            "/.well-known/oauth-authorization-server",
            document(**names, response_types_supported=["code"], code_challenge_methods_supported=["S256"]),
        )
        redirect = "http://127.0.0.1:33418/callback"
        registered = document(client_id="c1", redirect_uris=[redirect], status="201 Created")
        self._post(host, json.dumps({"redirect_uris": [redirect]}).encode(), registered, target="/register")
        form = f"grant_type=authorization_code&code={SECRET}&client_id=c1&code_verifier={SECRET}&resource={url}/closed"
        token = document(access_token=SECRET, token_type="Bearer", expires_in=60)
        kind = "Content-Type: application/x-www-form-urlencoded"
        self._steps.append((post(form.encode(), kind, target="/token", host=host), (token,)))
        bearer = (f"Authorization: Bearer {SECRET}",)
        self._post(host, opening, json_answer(said(id=0, result=RESULT)), headers=bearer, target="/closed")


MODERN = {
    "protocolVersion": "2026-07-28",
    "clientInfo": {"name": "c", "version": "1"},
    "clientCapabilities": {},
}


def modern_calls() -> list[tuple[str, dict[str, Any], Callable[[int], tuple[bytes, ...]]]]:
    """Methods and params of 2026-07-28, and what answers them, given the id."""
    discovered = {
        "supportedVersions": ["2026-07-28"],
        "capabilities": {"tools": {}},
        "serverInfo": RESULT["serverInfo"],
    }
    told = event(method="notifications/message", params={"level": "info", "data": "x"})
    return [
        ("server/discover", {}, lambda id_: (json_answer(said(id=id_, result=discovered)),)),
        ("tools/list", {}, lambda id_: (json_answer(said(id=id_, result={"tools": []})),)),
        (
            "tools/call",
            {"name": "x"},
            lambda id_: (STREAM, chunk(told), chunk(event(id=id_, result={"content": []})), chunk(b"")),
        ),
        ("tools/call", {"name": "y"}, lambda id_: (json_answer(said(id=id_, error={"code": 1, "message": "no"})),)),
        ("no/such", {}, lambda _: (answer(b"", status="404 Not Found"),)),
    ]


def json_answer(body: bytes, *headers: str, status: str = "200 OK") -> bytes:
    return answer(body, JSON.decode().strip(), *headers, status=status)


def document(*, status: str = "200 OK", **members: Any) -> bytes:
    return json_answer(json.dumps(members).encode(), status=status)


def listed(messages: list[bytes]) -> bytes:
    return b"[" + b",".join(messages) + b"]"
