"""Calls under faults with the client of the MCP Python SDK 2.x: python faulty_sdk2.py < PLANS (see faulty.py)."""

import asyncio
from typing import Any

import faulty
from mcp import ClientSession, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client


async def hold(plan: dict[str, Any]) -> None:
    if plan["transport"] == "http":
        transport: Any = streamable_http_client(plan["target"])
    else:
        command, *words = plan["target"]
        transport = stdio_client(StdioServerParameters(command=command, args=words))
    async with transport as streams, ClientSession(streams[0], streams[1]) as session:
        await session.initialize()

        async def call(message: str, seconds: float) -> Any:
            return await session.call_tool("echo", {"message": message}, read_timeout_seconds=seconds)

        await faulty.session(plan, call)


if __name__ == "__main__":
    asyncio.run(faulty.hold_all(hold))
