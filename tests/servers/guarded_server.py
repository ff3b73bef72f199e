"""An MCP server that asks for tokens, and its authorization server at another place; standard library only.

    python guarded_server.py PORT URL ISSUER_PORT ISSUER

URL and ISSUER are how clients reach the two, maybe through something that adds TLS. Who asks for a code gets it at
once, as if somebody had logged in and agreed. For the tool ``add`` a token has expired when it has served a call
before; it can be renewed. The tool ``secret`` needs the scope ``secret``. Both tools add ``a`` and ``b``. All tokens
and codes begin with ``EX-``.
"""

import json
import secrets
import sys
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

RESOURCE = "/.well-known/oauth-protected-resource"
SERVER = "/.well-known/oauth-authorization-server"
NUMBERS = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}


@dataclass
class Token:
    scopes: list[str]
    calls: int = 0


def secret() -> str:
    return f"EX-{secrets.token_urlsafe(16)}"


@dataclass
class World:
    """What both servers know."""

    url: str
    issuer: str
    tokens: dict[str, Token]
    scopes: dict[str, list[str]]
    """Of codes and refresh tokens."""

    def grant(self, scopes: list[str]) -> dict[str, Any]:
        access, refresh = secret(), secret()
        self.tokens[access], self.scopes[refresh] = Token(scopes), scopes
        return {"access_token": access, "refresh_token": refresh, "token_type": "Bearer", "scope": " ".join(scopes)}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    world: World

    def log_message(self, *_: Any) -> None:
        pass

    def body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def answer(self, status: int, value: Any = None, **headers: str) -> None:
        data = b"" if value is None else json.dumps(value).encode()
        self.send_response(status)
        for name, text in {"Content-Type": "application/json", **headers}.items():
            self.send_header(name.replace("_", "-"), text)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


class Guarded(Handler):
    """The MCP server."""

    def do_GET(self) -> None:
        path = urlsplit(self.world.url).path
        if self.path == RESOURCE + path:
            self.answer(200, {"resource": self.world.url, "authorization_servers": [self.world.issuer]})
        else:
            self.answer(405 if self.path == path else 404)

    def do_DELETE(self) -> None:
        self.answer(405)

    def do_POST(self) -> None:
        message = json.loads(self.body())
        token = self.world.tokens.get(self.headers.get("Authorization", "").removeprefix("Bearer "))
        tool = message["params"]["name"] if message["method"] == "tools/call" else ""
        if token is None or (tool == "add" and token.calls):
            self.refuse(401, *(['error="invalid_token"'] if "Authorization" in self.headers else []))
        elif tool == "secret" and "secret" not in token.scopes:
            self.refuse(403, 'error="insufficient_scope"', 'scope="calls secret"')
        elif "id" not in message:
            self.answer(202)
        else:
            token.calls += bool(tool)
            self.answer(200, {"jsonrpc": "2.0", "id": message["id"], "result": self.result(message)})

    def refuse(self, status: int, *parameters: str) -> None:
        parts = urlsplit(self.world.url)
        place = f'resource_metadata="{parts.scheme}://{parts.netloc}{RESOURCE}{parts.path}"'
        self.answer(status, WWW_Authenticate=f"Bearer {', '.join([*parameters, place])}")

    def result(self, message: dict[str, Any]) -> dict[str, Any]:
        params = message.get("params", {})
        if message["method"] == "initialize":
            about = {"name": "guarded", "version": "1"}
            return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": about}
        if message["method"] == "tools/list":
            return {"tools": [{"name": name, "inputSchema": NUMBERS} for name in ("add", "secret")]}
        total = params["arguments"]["a"] + params["arguments"]["b"]
        return {"content": [{"type": "text", "text": str(total)}]}


class Issuing(Handler):
    """The authorization server."""

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        if parts.path == SERVER:
            self.answer(200, self.metadata())
        elif parts.path == "/authorize":
            self.redirect({name: values[0] for name, values in parse_qs(parts.query).items()})
        else:
            self.answer(404)

    def do_POST(self) -> None:
        body = self.body()
        if self.path == "/register":
            self.answer(201, {**json.loads(body), "client_id": secrets.token_hex(4)})
            return
        asked = {name: values[0] for name, values in parse_qs(body.decode()).items()}
        scopes = self.world.scopes.pop(asked.get("code") or asked.get("refresh_token", ""), None)
        if scopes is None:
            self.answer(400, {"error": "invalid_grant"})
        else:
            self.answer(200, self.world.grant(scopes))

    def redirect(self, asked: dict[str, str]) -> None:
        code = secret()
        self.world.scopes[code] = asked.get("scope", "calls").split()
        back = urlencode({"code": code, "state": asked["state"], "iss": self.world.issuer})
        self.answer(302, Location=f"{asked['redirect_uri']}?{back}")

    def metadata(self) -> dict[str, Any]:
        issuer = self.world.issuer
        return {
            "issuer": issuer,
            **{f"{name}_endpoint": f"{issuer}/{path}" for name, path in PATHS.items()},
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none"],
            "authorization_response_iss_parameter_supported": True,
        }


PATHS = {"authorization": "authorize", "token": "token", "registration": "register"}


def main(port: str, url: str, issuer_port: str, issuer: str) -> None:
    Handler.world = World(url, issuer, {}, {})
    issuing = ThreadingHTTPServer(("127.0.0.1", int(issuer_port)), Issuing)
    threading.Thread(target=issuing.serve_forever, daemon=True).start()
    ThreadingHTTPServer(("127.0.0.1", int(port)), Guarded).serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
