"""Hold scripted sessions with servers, with a client of the MCP Python SDK 2.x; print them as JSON.

    python client_sdk2.py legacy|auto < PLAN

``legacy``: the initialize handshake (2025-11-25) by ClientSession. ``auto``: the high-level Client, which asks for
server/discover first (2026-07-28) and falls back. Runs in .env-sdk2; sessions.hold_all says what a plan is.
"""

import asyncio
import contextlib
import functools
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import mcp
import sessions
from mcp import ClientSession, MCPError, StdioServerParameters, stdio_client, types
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client


def plain(model: Any) -> Any:
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


class Client:
    Error = MCPError

    def __init__(self, session: ClientSession | mcp.Client, told: sessions.Told) -> None:
        self.session = session
        self.told = told

    def describe(self, error: MCPError) -> Any:
        return plain(error.error)

    async def list_tools(self) -> Any:
        return plain(await self.session.list_tools())

    async def call(self, name: str, arguments: dict[str, Any]) -> Any:
        return plain(await self.session.call_tool(name, arguments))

    async def call_with_progress(self, name: str, arguments: dict[str, Any]) -> Any:
        progress = []

        async def note(done: float, total: float | None, message: str | None) -> None:
            progress.append([done, total, message])

        result = await self.session.call_tool(name, arguments, progress_callback=note)
        return {"progress": progress, "result": plain(result)}

    async def call_and_cancel(self, name: str, arguments: dict[str, Any]) -> Any:
        """Abandon a call after a moment; the SDK sends notifications/cancelled on its own account."""
        task = asyncio.create_task(self.session.call_tool(name, arguments))
        await asyncio.sleep(0.2)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return "cancelled"

    async def list_prompts(self) -> Any:
        return plain(await self.session.list_prompts())

    async def get_prompt(self, name: str, arguments: dict[str, str] | None) -> Any:
        return plain(await self.session.get_prompt(name, arguments))

    async def complete(self, prompt: str, argument: tuple[str, str], context: dict[str, str] | None) -> Any:
        reference = types.PromptReference(type="ref/prompt", name=prompt)
        given = {"name": argument[0], "value": argument[1]}
        return plain(await self.session.complete(reference, given, context))

    async def list_resources(self) -> Any:
        return plain(await self.session.list_resources())

    async def list_templates(self) -> Any:
        return plain(await self.session.list_resource_templates())

    async def read(self, uri: str) -> Any:
        return plain(await self.session.read_resource(uri))

    async def subscribe(self, uri: str) -> Any:
        return plain(await self.session.subscribe_resource(uri))

    async def unsubscribe(self, uri: str) -> Any:
        return plain(await self.session.unsubscribe_resource(uri))

    async def set_level(self, level: Any) -> Any:
        return plain(await self.session.set_logging_level(level))

    async def ping(self) -> Any:
        return plain(await self.session.send_ping())

    async def watch(self, uri: str, tool: str) -> Any:
        """Open a subscription stream (2026-07-28), make the resource change, close it; else only call the tool."""
        if not isinstance(self.session, mcp.Client) or self.session.protocol_version < "2026-07-28":
            return await self.call(tool, {"uri": uri})
        async with self.session.listen(resource_subscriptions=[uri]) as subscription:
            answer = await self.call(tool, {"uri": uri})
            event = await anext(subscription)
        return {"answer": answer, "event": repr(event)}

    async def wait_for_roots(self) -> Any:
        """Let the server ask for roots and say that it has them; it asks in vain before the stream for it is open."""
        while not self.told.logs:
            try:
                await asyncio.wait_for(self.told.roots_asked.wait(), sessions.REMIND_SECONDS)
            except TimeoutError:
                await self.session.send_roots_list_changed()
            await asyncio.sleep(sessions.SETTLE_SECONDS)


def callbacks(told: sessions.Told, folder: Path) -> dict[str, Any]:
    """What this client does when the server wants something from it."""

    async def sample(context: Any, params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
        told.asked.append({"sampling": plain(params)})
        text = types.TextContent(type="text", text="sampled by the client")
        return types.CreateMessageResult(role="assistant", model="none", content=text, stop_reason="endTurn")

    async def elicit(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        told.asked.append({"elicitation": plain(params)})
        return types.ElicitResult(action="accept", content={"name": "Ada"})

    async def roots(context: Any) -> types.ListRootsResult:
        if not told.roots_asked.is_set():
            told.asked.append("roots")
            told.roots_asked.set()
        return types.ListRootsResult(roots=[types.Root(uri=folder.as_uri(), name="work")])

    async def log(params: types.LoggingMessageNotificationParams) -> None:
        told.logs.append(plain(params))

    return {
        "sampling_callback": sample,
        "elicitation_callback": elicit,
        "list_roots_callback": roots,
        "logging_callback": log,
    }


@contextlib.asynccontextmanager
async def connected(
    mode: str, transport: Any, answers: dict[str, Any]
) -> AsyncIterator[tuple[ClientSession | mcp.Client, Any]]:
    """Connect in one of the two ways; gives the session and what the server said about itself."""
    if mode == "auto":
        async with mcp.Client(transport, **answers) as client:
            opening = [client.protocol_version, plain(client.server_info), plain(client.server_capabilities)]
            yield client, opening
    else:
        async with transport as streams, ClientSession(*streams, **answers) as session:
            yield session, plain(await session.initialize())


def reach(plan: sessions.Plan, env: dict[str, str]) -> Any:
    """The transport to the server that the plan names."""
    if plan.transport == "sse":
        return sse_client(plan.target)
    if plan.transport == "http":
        return streamable_http_client(plan.target)
    return stdio_client(StdioServerParameters(command=plan.target[0], args=plan.target[1:], env=env))


async def session(mode: str, plan: sessions.Plan) -> dict[str, Any]:
    transport = reach(plan, sessions.prepare(plan.server, plan.folder))
    told = sessions.Told()
    async with connected(mode, transport, callbacks(told, plan.folder)) as (connection, opening):
        return {"opening": opening, **await sessions.hold(Client(connection, told), plan, told)}


if __name__ == "__main__":
    asyncio.run(sessions.hold_all(functools.partial(session, sys.argv[1])))
