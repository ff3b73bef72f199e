"""A client on the MCP Python SDK 1.x for the client scenarios of the conformance suite.

    python client.py URL

The suite names the scenario, and what that gives to the client, in the environment.
"""

import asyncio
import json
import os
import sys
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
from mcp import ClientSession, types
from mcp.client.auth import OAuthClientProvider
from mcp.client.auth.extensions.client_credentials import (
    ClientCredentialsOAuthProvider,
    PrivateKeyJWTOAuthProvider,
    SignedJWTParameters,
)
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata
from pydantic import AnyUrl

BACK = "http://localhost:3034/callback"
ABOUT = "https://conformance-test.local/client-metadata.json"
SCENARIO = os.environ["MCP_CONFORMANCE_SCENARIO"]
GIVEN = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
CALLS = {
    "tools_call": ("add_numbers", {"a": 5, "b": 3}),
    "elicitation-sep1034-client-defaults": ("test_client_elicitation_defaults", {}),
    "sse-retry": ("test_reconnection", {}),
}


class Memory:
    """Where tokens are kept (`mcp.client.auth.TokenStorage`)."""

    def __init__(self) -> None:
        self.tokens: Any = None
        self.client: Any = None
        if SCENARIO == "auth/pre-registration":
            given = {"client_id": GIVEN["client_id"], "client_secret": GIVEN["client_secret"]}
            method = "client_secret_basic"
            self.client = OAuthClientInformationFull(
                redirect_uris=[AnyUrl(BACK)], token_endpoint_auth_method=method, **given
            )

    async def get_tokens(self) -> Any:
        return self.tokens

    async def set_tokens(self, tokens: Any) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> Any:
        return self.client

    async def set_client_info(self, client_info: Any) -> None:
        self.client = client_info


def authorizing(url: str) -> httpx.Auth:
    """The SDK's ways to a token; with a browser it is one itself."""
    if SCENARIO == "auth/client-credentials-basic":
        return ClientCredentialsOAuthProvider(url, Memory(), GIVEN["client_id"], GIVEN["client_secret"])
    if SCENARIO == "auth/client-credentials-jwt":
        client, key, algorithm = GIVEN["client_id"], GIVEN["private_key_pem"], GIVEN["signing_algorithm"]
        signed = SignedJWTParameters(issuer=client, subject=client, signing_key=key, signing_algorithm=algorithm)
        return PrivateKeyJWTOAuthProvider(url, Memory(), client, signed.create_assertion_provider())
    answers: list[dict[str, list[str]]] = []

    async def browse(address: str) -> None:
        async with httpx.AsyncClient() as browser:
            answers.append(parse_qs(urlsplit((await browser.get(address)).headers["location"]).query))

    async def come_back() -> tuple[str, str | None]:
        found = answers.pop()
        return found["code"][0], found.get("state", [None])[0]

    about = OAuthClientMetadata(redirect_uris=[AnyUrl(BACK)], client_name="conformance client")
    return OAuthClientProvider(url, about, Memory(), browse, come_back, client_metadata_url=ABOUT)


async def answer_with_defaults(_context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
    fields = params.requestedSchema["properties"]
    return types.ElicitResult(
        action="accept", content={name: field["default"] for name, field in fields.items() if "default" in field}
    )


async def run(url: str) -> None:
    auth = authorizing(url) if SCENARIO.startswith("auth/") else None
    async with (
        httpx.AsyncClient(auth=auth, timeout=30) as web,
        streamable_http_client(url, http_client=web) as streams,
        ClientSession(*streams[:2], elicitation_callback=answer_with_defaults) as session,
    ):
        await session.initialize()
        tools = await session.list_tools()
        name, arguments = CALLS.get(SCENARIO, (tools.tools[0].name if tools.tools else "", {}))
        if name and SCENARIO != "initialize":
            await session.call_tool(name, arguments)


asyncio.run(run(sys.argv[1]))
