"""A server on the MCP Python SDK 1.x, which most servers in use are built on; it offers what sdk2_server.py does.

    python sdk1_server.py [sse|http|json PORT]

Without arguments it talks on stdio; ``json`` is Streamable HTTP with whole bodies instead of event streams.
"""

import asyncio
import sys

from events import a_store_each, serve
from mcp.server.fastmcp import Context, FastMCP
from mcp.types import SamplingMessage, TextContent
from pydantic import AnyUrl, BaseModel

server = FastMCP("sdk1-server", log_level="WARNING")


class Person(BaseModel):
    name: str


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
    """Count with progress and log messages."""
    for number in range(1, to + 1):
        await ctx.report_progress(number, to, f"at {number}")
        await ctx.info(f"log {number}")
    return f"counted to {to}"


@server.tool()
async def greet(ctx: Context) -> str:
    """Greet whoever answers."""
    answer = await ctx.elicit("Who is there?", Person)
    return f"Hello, {answer}"


@server.tool()
async def summarise(text: str, ctx: Context) -> str:
    """Let the client's model summarise a text."""
    message = SamplingMessage(role="user", content=TextContent(type="text", text=f"Summarise: {text}"))
    answer = await ctx.session.create_message([message], max_tokens=20)
    return f"{len(text)} characters: {answer.content}"


@server.tool()
async def touch(uri: str, ctx: Context) -> str:
    """Say that a resource has changed."""
    await ctx.session.send_resource_updated(AnyUrl(uri))
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
    server.settings.json_response = mode == "json"
    if mode == "stdio":
        server.run("stdio")
    elif mode == "sse":
        serve(server.sse_app(), int(port))
    else:
        app = server.streamable_http_app()
        a_store_each(server.session_manager)
        serve(app, int(port))


if __name__ == "__main__":
    main(*sys.argv[1:])
