"""A server on the MCP Python SDK 2.x: a plain tool, progress, a question to the user, sampling, a resource, a prompt.

On revision 2026-07-28 the two questions are input-required results (multi round-trip requests); with an older client
they are requests of the server's own.

    python sdk2_server.py [sse|http|json PORT]

Without arguments it talks on stdio; ``json`` is Streamable HTTP with whole bodies instead of event streams.
"""

import asyncio
import sys
from typing import Annotated

from events import a_store_each, serve
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.resolve import Elicit, Resolve, Sample
from mcp.types import CreateMessageResult, SamplingMessage, TextContent
from pydantic import BaseModel

server = MCPServer("sdk2-server", version="1.0", log_level="WARNING")


class Person(BaseModel):
    name: str


async def who() -> Elicit[Person]:
    return Elicit("Who is there?", Person)


async def summary(text: str) -> Sample:
    message = SamplingMessage(role="user", content=TextContent(type="text", text=f"Summarise: {text}"))
    return Sample([message], max_tokens=20)


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def echo(message: str) -> str:
    """Say it again."""
    return f"Echo: {message}"


@server.tool()
async def count(to: int, ctx: Context) -> str:
    """Count with progress."""
    for number in range(1, to + 1):
        await ctx.report_progress(number, to, f"at {number}")
    return f"counted to {to}"


@server.tool()
async def greet(person: Annotated[Person, Resolve(who)]) -> str:
    """Greet whoever answers."""
    return f"Hello, {person.name}"


@server.tool()
async def summarise(text: str, answer: Annotated[CreateMessageResult, Resolve(summary)]) -> str:
    """Let the client's model summarise a text."""
    return f"{len(text)} characters: {answer.content}"


@server.tool()
async def touch(uri: str, ctx: Context) -> str:
    """Say that a resource has changed."""
    await ctx.notify_resource_updated(uri)
    return "touched"


@server.tool()
async def pause(ctx: Context) -> str:
    """Over Streamable HTTP, cut the stream of this request; the client has to resume it for the answer."""
    await ctx.close_sse_stream()
    await asyncio.sleep(0.2)
    return "resumed"


@server.resource("note://today")
def note() -> str:
    """A note."""
    return "nothing to do"


@server.prompt()
def ask(topic: str) -> str:
    """Ask about a topic."""
    return f"What about {topic}?"


def main(mode: str = "stdio", port: str = "0") -> None:
    if mode == "stdio":
        server.run("stdio")
    elif mode == "sse":
        serve(server.sse_app(), int(port))
    else:
        app = server.streamable_http_app(json_response=mode == "json")
        a_store_each(server.session_manager)
        serve(app, int(port))


if __name__ == "__main__":
    main(*sys.argv[1:])
