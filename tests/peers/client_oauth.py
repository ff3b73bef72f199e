"""A client on the MCP Python SDK, 1.x or 2.x, that gets itself a token for the server at URL and calls tools.

    python client_oauth.py URL [TOOL...]

Each tool is to add 1 and 2; without one it is ``add``. It is its own browser: the authorization request goes the same
way as all others. Says in one line of JSON what came of it: ``{"sum": 3}``, or ``{"failed": "…"}``.
"""

import asyncio
import json
import sys
from typing import Any
from urllib.parse import parse_qs, urlsplit

from mcp import ClientSession
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientMetadata
from pydantic import AnyUrl

try:
    import httpx2 as httpx
    from mcp.shared.auth import AuthorizationCodeResult
except ImportError:
    import httpx

    AuthorizationCodeResult = None

BACK = "http://localhost:3033/callback"


class Memory:
    """Where tokens are kept (`mcp.client.auth.TokenStorage`)."""

    tokens: Any = None
    client: Any = None

    async def get_tokens(self) -> Any:
        return self.tokens

    async def set_tokens(self, tokens: Any) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> Any:
        return self.client

    async def set_client_info(self, client_info: Any) -> None:
        self.client = client_info


async def add(url: str, tools: list[str]) -> int:
    answers: list[dict[str, list[str]]] = []

    async def browse(address: str) -> None:
        async with httpx.AsyncClient() as browser:
            response = await browser.get(address, headers={"Accept": "text/html"})
        assert response.status_code == 302, response.text
        answers.append(parse_qs(urlsplit(response.headers["location"]).query))

    async def come_back() -> Any:
        found = answers.pop()
        code, state, iss = found["code"][0], found["state"][0], found.get("iss", [None])[0]
        if AuthorizationCodeResult is None:
            return code, state
        return AuthorizationCodeResult(code=code, state=state, iss=iss)

    about = OAuthClientMetadata(redirect_uris=[AnyUrl(BACK)], client_name="oauth client")
    auth = OAuthClientProvider(url, about, Memory(), browse, come_back)
    async with (
        httpx.AsyncClient(auth=auth, timeout=20) as web,
        streamable_http_client(url, http_client=web) as streams,
        ClientSession(*streams[:2]) as session,
    ):
        await session.initialize()
        for tool in tools:
            result = await session.call_tool(tool, {"a": 1, "b": 2})
        return int(result.content[0].text)


def first(error: BaseException) -> str:
    """What went wrong, out of the groups around it."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    try:
        print(json.dumps({"sum": asyncio.run(add(sys.argv[1], sys.argv[2:] or ["add"]))}))
    except Exception as error:
        print(json.dumps({"failed": first(error)}))
