"""A server on the MCP Python SDK 1.x that asks for a token, and grants it: its own authorization server, in memory.

    python oauth_server.py PORT URL

URL is the address under which clients are to know it: the server's own, or that of a proxy before it. Who asks for a
code gets it at once, as if somebody had logged in and agreed.
"""

import secrets
import sys
import time
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from events import serve
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.server.fastmcp import FastMCP
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyHttpUrl


@dataclass
class Everyone:
    """An authorization server that trusts everyone (`mcp.server.auth.provider.OAuthAuthorizationServerProvider`)."""

    clients: dict[str, OAuthClientInformationFull] = field(default_factory=dict)
    codes: dict[str, AuthorizationCode] = field(default_factory=dict)
    tokens: dict[str, AccessToken] = field(default_factory=dict)

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        assert client_info.client_id
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        code = secrets.token_urlsafe(16)
        asked = params.model_dump(exclude={"state"})
        self.codes[code] = AuthorizationCode(
            **{**asked, "scopes": params.scopes or []},
            code=code,
            expires_at=time.time() + 60,
            client_id=str(client.client_id),
        )
        return construct_redirect_uri(str(params.redirect_uri), code=code, state=params.state)

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        token = secrets.token_urlsafe(16)
        self.tokens[token] = AccessToken(token=token, client_id=str(client.client_id), scopes=[])
        return OAuthToken(access_token=token, token_type="Bearer", expires_in=600)

    async def load_refresh_token(self, client: OAuthClientInformationFull, refresh_token: str) -> RefreshToken | None:
        return None

    async def load_access_token(self, token: str) -> AccessToken | None:
        return self.tokens.get(token)


def main(port: str, url: str) -> None:
    parts = urlsplit(url)
    settings = AuthSettings(
        issuer_url=AnyHttpUrl(f"{parts.scheme}://{parts.netloc}"),
        resource_server_url=AnyHttpUrl(url),
        validate_token_resource=False,
        client_registration_options=ClientRegistrationOptions(enabled=True),
    )
    hosts = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    server = FastMCP(
        "oauth-server",
        auth=settings,
        auth_server_provider=Everyone(),
        log_level="CRITICAL",
        transport_security=hosts,
    )

    @server.tool()
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    serve(server.streamable_http_app(), int(port))


if __name__ == "__main__":
    main(*sys.argv[1:])
