"""An authorization seen by a forward proxy: messages recorded as such, and an authorization server on another host."""

from typing import Any

from mcpsniff.capture.records import Header, Record
from mcpsniff.decoder import Decoder
from mcpsniff.protocol.http import Http
from tests.sessions import decode, findings

MCP, AS = "mcp.example", "as.example"
INIT = (
    b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},'
    b'"clientInfo":{"name":"c","version":"1"}}}'
)
WELL_KNOWN = "/.well-known/oauth-protected-resource/mcp"
QUERY = (
    "response_type=code&client_id=x&redirect_uri=http%3A%2F%2Flocalhost%3A3000%2Fback&state=7&code_challenge=c"
    "&code_challenge_method=S256&resource=https%3A%2F%2Fmcp.example%2Fmcp"
)
FORM = b"grant_type=authorization_code&client_id=x&code=***&code_verifier=***&resource=https%3A%2F%2Fmcp.example%2Fmcp"


class Tape:
    """Records of HTTP exchanges, one after the other."""

    def __init__(self) -> None:
        self.records: list[Record] = []

    def exchange(  # noqa: PLR0917 - a row of a table
        self,
        conn: int,
        start: str,
        host: str,
        status: str,
        said: bytes = b"",
        asked: bytes = b"",
        *headers: tuple[str, str],
        kind: str = "application/json",
        back: tuple[tuple[str, str], ...] = (),
    ) -> None:
        number = 2 * len([record for record in self.records if record.kind == "open"]) // 2
        about: dict[str, Any] = {
            "authority": host,
            "scheme": "https",
            "client": "127.0.0.1:1",
            "server": "192.0.2.1:443",
        }
        sent = [["Host", host], ["Content-Type", kind], *map(list, headers)]
        answer = [["Content-Type", "application/json"], *map(list, back)]
        meta = {**about, "start": f"{start} HTTP/1.1", "headers": sent}
        self._put("open", number, {"kind": "http-request", "dir": "c2s", "conn": conn, "meta": meta})
        if asked:
            self._put("chunk", number, asked)
        self._put("close", number, {"how": "eof"})
        meta = {**about, "start": f"HTTP/1.1 {status}", "headers": answer}
        fields = {"kind": "http-response", "dir": "s2c", "conn": conn, "of": number, "meta": meta}
        self._put("open", number + 1, fields)
        if said:
            self._put("chunk", number + 1, said)
        self._put("close", number + 1, {"how": "eof"})

    def _put(self, kind: str, channel: int, body: Any) -> None:
        self.records.append(Record(1000 * len(self.records), kind, channel, body))


def whole(resource: str = "https://mcp.example/mcp", issuer: str = "https://as.example") -> list[Record]:
    tape = Tape()
    accept = ("Accept", "application/json, text/event-stream")
    pointer = f'Bearer resource_metadata="https://{MCP}{WELL_KNOWN}"'
    tape.exchange(1, "POST /mcp", MCP, "401 Unauthorized", b"", INIT, accept, back=(("WWW-Authenticate", pointer),))
    named = f'{{"resource":"{resource}","authorization_servers":["https://{AS}"]}}'
    tape.exchange(1, f"GET {WELL_KNOWN}", MCP, "200 OK", named.encode())
    endpoints = f'{{"issuer":"{issuer}","token_endpoint":"https://{AS}/t","registration_endpoint":"https://{AS}/r"}}'
    tape.exchange(2, "GET /.well-known/oauth-authorization-server", AS, "200 OK", endpoints.encode())
    client = b'{"redirect_uris":["http://localhost:3000/back"]}'
    tape.exchange(2, "POST /r", AS, "201 Created", b'{"client_id":"x"}', client)
    form = "application/x-www-form-urlencoded"
    tape.exchange(
        3, f"GET /authorize?{QUERY}", AS, "302 Found", back=(("Location", "http://localhost:3000/back?state=7"),)
    )
    tape.exchange(4, "GET /back?code=***&state=7", "localhost:3000", "200 OK")
    tape.exchange(2, "POST /t", AS, "200 OK", b'{"access_token":"***","token_type":"Bearer"}', FORM, kind=form)
    result = b'{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{}}}'
    tape.exchange(1, "POST /mcp", MCP, "200 OK", result, INIT, accept, ("Authorization", "Bearer ***"))
    return tape.records


def told(records: list[Record]) -> tuple[list[tuple[int, str]], list[str]]:
    """The steps, and what is found that concerns authorization."""
    header = Header("01J00000000000000000000000", 1, "2026-11-29T10:00:00.000000Z", "forward")
    events = decode(records, decoder=Decoder(header))
    steps = [event.exchange.auth for event in events if isinstance(event, Http)]
    codes = [
        finding.code for finding in findings(events) if "MCP540" <= finding.code < "MCP549" or finding.code == "MCP557"
    ]
    return [(step.authorization.number, step.name) for step in steps if step is not None], codes


def test_every_step_at_every_host_is_of_one_authorization() -> None:
    names = ["challenge", "resource-metadata", "server-metadata", "registration", "authorization", "redirect", "token"]
    assert told(whole()) == ([(1, name) for name in (*names, "authorized")], [])


def test_a_server_that_names_another_resource_is_to_blame_itself() -> None:
    assert told(whole(resource="https://other.example/mcp"))[1] == ["MCP545"]


def test_an_issuer_that_answers_for_another_is_found() -> None:
    assert told(whole(issuer="https://evil.example"))[1] == ["MCP546"]


def test_without_the_bytes_of_one_exchange_nobody_is_blamed() -> None:
    records = whole()
    for at, record in enumerate(records):
        if record.kind == "chunk":
            lost = Record(record.t, "gap", record.channel, {"bytes": len(record.body), "why": "queue"})
            assert told([*records[:at], lost, *records[at + 1 :]])[1] == []
