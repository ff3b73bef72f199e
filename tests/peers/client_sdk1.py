"""Hold scripted sessions with servers, with the client of the MCP Python SDK 1.x; print them as JSON.

    python client_sdk1.py < PLAN

Runs in .env-sdk1; sessions.hold_all says what a plan is.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import sessions
from mcp import ClientSession, McpError, StdioServerParameters, stdio_client, types
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from pydantic import AnyUrl, FileUrl


def plain(model: Any) -> Any:
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


class Client:
    Error = McpError

    def __init__(self, session: ClientSession, told: sessions.Told) -> None:
        self.session = session
        self.told = told

    def describe(self, error: McpError) -> Any:
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
        """Abandon a call after a moment, as the specification wants it: with a notification."""
        number = self.session._request_id
        task = asyncio.create_task(self.session.call_tool(name, arguments))
        await asyncio.sleep(0.2)
        params = types.CancelledNotificationParams(requestId=number, reason="changed my mind")
        await self.session.send_notification(
            types.ClientNotification(types.CancelledNotification(method="notifications/cancelled", params=params))
        )
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
        return plain(await self.session.read_resource(AnyUrl(uri)))

    async def subscribe(self, uri: str) -> Any:
        return plain(await self.session.subscribe_resource(AnyUrl(uri)))

    async def unsubscribe(self, uri: str) -> Any:
        return plain(await self.session.unsubscribe_resource(AnyUrl(uri)))

    async def set_level(self, level: Any) -> Any:
        return plain(await self.session.set_logging_level(level))

    async def ping(self) -> Any:
        return plain(await self.session.send_ping())

    async def watch(self, uri: str, tool: str) -> Any:
        """A subscription stream is of a later revision than this client; only the tool is called."""
        return await self.call(tool, {"uri": uri})

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
        return types.CreateMessageResult(role="assistant", model="none", content=text, stopReason="endTurn")

    async def elicit(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        told.asked.append({"elicitation": plain(params)})
        return types.ElicitResult(action="accept", content={"name": "Ada"})

    async def roots(context: Any) -> types.ListRootsResult:
        if not told.roots_asked.is_set():
            told.asked.append("roots")
            told.roots_asked.set()
        return types.ListRootsResult(roots=[types.Root(uri=FileUrl(folder.as_uri()), name="work")])

    async def log(params: types.LoggingMessageNotificationParams) -> None:
        told.logs.append(plain(params))

    return {
        "sampling_callback": sample,
        "elicitation_callback": elicit,
        "list_roots_callback": roots,
        "logging_callback": log,
    }


@contextlib.asynccontextmanager
async def connected(plan: sessions.Plan, env: dict[str, str]) -> AsyncIterator[tuple[Any, Any]]:
    """The two streams to and from the server that the plan names."""
    if plan.transport == "sse":
        transport = sse_client(plan.target)
    elif plan.transport == "http":
        transport = streamable_http_client(plan.target)
    else:
        transport = stdio_client(StdioServerParameters(command=plan.target[0], args=plan.target[1:], env=env))
    async with transport as streams:
        yield streams[0], streams[1]


async def session(plan: sessions.Plan) -> dict[str, Any]:
    env = sessions.prepare(plan.server, plan.folder)
    told = sessions.Told()
    async with (
        connected(plan, env) as streams,
        ClientSession(*streams, **callbacks(told, plan.folder)) as connection,
    ):
        opening = plain(await connection.initialize())
        return {"opening": opening, **await sessions.hold(Client(connection, told), plan, told)}


if __name__ == "__main__":
    asyncio.run(sessions.hold_all(session))
