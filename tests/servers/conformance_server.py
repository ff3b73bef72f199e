"""A server for the official conformance suite, on the MCP Python SDK 2.x: what its scenarios call, and no more.

    python conformance_server.py PORT

Serves Streamable HTTP at /mcp, in sessions (2025-11-25 and earlier) and without (2026-07-28). Its event store lets a
client resume a stream that was cut. The texts and names are those that the scenarios ask for.
"""

import asyncio
import base64
import logging
import sys
import warnings
from typing import Any

import conformance_questions as questions
from events import a_store_each, serve
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.prompts.base import UserMessage
from mcp.types import (
    AudioContent,
    Completion,
    ContentBlock,
    EmbeddedResource,
    EmptyResult,
    ImageContent,
    SamplingMessage,
    SetLevelRequestParams,
    SubscribeRequestParams,
    TextContent,
    TextResourceContents,
    UnsubscribeRequestParams,
)

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
SOUND = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQIAAACAgA=="

server = MCPServer("conformance-server", version="1.0")
questions.register(server)


def text(words: str) -> TextContent:
    return TextContent(type="text", text=words)


def image() -> ImageContent:
    return ImageContent(type="image", data=PIXEL, mime_type="image/png")


def embedded(uri: str, words: str, kind: str = "text/plain") -> EmbeddedResource:
    return EmbeddedResource(type="resource", resource=TextResourceContents(uri=uri, mime_type=kind, text=words))


@server.tool()
def test_simple_text() -> list[ContentBlock]:
    """Text."""
    return [text("This is a simple text response for testing.")]


@server.tool()
def test_image_content() -> list[ContentBlock]:
    """An image."""
    return [image()]


@server.tool()
def test_audio_content() -> list[ContentBlock]:
    """A sound."""
    return [AudioContent(type="audio", data=SOUND, mime_type="audio/wav")]


@server.tool()
def test_embedded_resource() -> list[ContentBlock]:
    """A resource inside the result."""
    return [embedded("test://embedded-resource", "This is an embedded resource content.")]


@server.tool()
def test_multiple_content_types() -> list[ContentBlock]:
    """Three kinds of content."""
    json = embedded("test://mixed-content-resource", '{"test":"data","value":123}', "application/json")
    return [text("Multiple content types test:"), image(), json]


@server.tool()
def test_error_handling() -> str:
    """A tool that fails."""
    raise ValueError("This tool intentionally returns an error for testing")


@server.tool()
async def test_tool_with_logging(ctx: Context) -> str:
    """Log messages while the tool runs."""
    await ctx.info("Tool execution started")
    await asyncio.sleep(0.05)
    await ctx.info("Tool processing data")
    await asyncio.sleep(0.05)
    await ctx.info("Tool execution completed")
    return "logged"


@server.tool()
async def test_logging_tool(ctx: Context) -> str:
    """A log message, which goes out only if the request asks for it (2026-07-28)."""
    await ctx.info("logging")
    return "logged"


@server.tool()
async def test_tool_with_progress(ctx: Context) -> str:
    """Progress while the tool runs."""
    for done in (0, 50, 100):
        await ctx.report_progress(done, 100, f"step {done}")
        await asyncio.sleep(0.05)
    return "done"


@server.tool()
async def test_sampling(prompt: str, ctx: Context) -> str:
    """Ask the client's model, by a request of the server's own."""
    question = SamplingMessage(role="user", content=text(prompt))
    answer = await ctx.session.create_message([question], max_tokens=100, related_request_id=ctx.request_id)
    return f"LLM response: {answer.content}"


async def asked(ctx: Context, message: str, schema: dict[str, Any]) -> str:
    answer = await ctx.session.elicit_form(message, schema, ctx.request_id)
    return f"User response: action={answer.action}, content={answer.content}"


@server.tool()
async def test_elicitation(message: str, ctx: Context) -> str:
    """Ask the user, by a request of the server's own."""
    return await asked(ctx, message, questions.form(username={"type": "string"}, email={"type": "string"}))


@server.tool()
async def test_elicitation_sep1034_defaults(ctx: Context) -> str:
    """Ask the user with a default for each kind of field."""
    form = questions.form(
        name={"type": "string", "default": "John Doe"},
        age={"type": "integer", "default": 30},
        score={"type": "number", "default": 95.5},
        status={"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        verified={"type": "boolean", "default": True},
    )
    return await asked(ctx, "Who are you?", form)


@server.tool()
async def test_elicitation_sep1330_enums(ctx: Context) -> str:
    """Ask the user to choose, in all five ways."""
    options = ["option1", "option2", "option3"]
    titled = [{"const": f"value{number}", "title": f"Choice {number}"} for number in (1, 2, 3)]
    names = ["Option One", "Option Two", "Option Three"]
    form = questions.form(
        untitledSingle={"type": "string", "enum": options},
        titledSingle={"type": "string", "oneOf": titled},
        legacyEnum={"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": names},
        untitledMulti={"type": "array", "items": {"type": "string", "enum": options}},
        titledMulti={"type": "array", "items": {"anyOf": titled}},
    )
    return await asked(ctx, "Choose.", form)


@server.tool()
async def test_reconnection(ctx: Context) -> str:
    """Cut the stream of this very request; the client resumes it and gets the answer there."""
    await ctx.close_sse_stream()
    await asyncio.sleep(0.3)
    return "Reconnection test completed"


@server.tool()
async def test_trigger_tool_change(ctx: Context) -> str:
    """Say that the list of tools has changed."""
    await ctx.notify_tools_changed()
    return "said"


@server.tool()
async def test_trigger_prompt_change(ctx: Context) -> str:
    """Say that the list of prompts has changed."""
    await ctx.notify_prompts_changed()
    return "said"


@server.tool()
def json_schema_2020_12_tool(name: str) -> str:
    """A tool whose input schema uses much of JSON Schema."""
    return name


@server.tool()
def test_custom_header(region: str) -> str:
    """A tool with an argument that travels in a header as well (2026-07-28)."""
    return region


def give_schemas() -> None:
    """Replace the derived schemas of two tools by those that the scenarios look for."""
    tools = server._tool_manager
    tools.get_tool("json_schema_2020_12_tool").parameters = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
            }
        },
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": False,
    }
    tools.get_tool("test_custom_header").parameters["properties"]["region"]["x-mcp-header"] = "Region"


@server.resource("test://static-text", mime_type="text/plain")
def static_text() -> str:
    """A text."""
    return "This is the content of the static text resource."


@server.resource("test://static-binary", mime_type="image/png")
def static_binary() -> bytes:
    """Bytes."""
    return base64.b64decode(PIXEL)


@server.resource("test://template/{id}/data", mime_type="application/json")
def template(id: str) -> str:  # noqa: A002  # the scenario names it
    """Any number of resources."""
    return f'{{"id":"{id}","templateTest":true,"data":"Data for ID: {id}"}}'


@server.resource("test://watched-resource")
def watched() -> str:
    """A resource to subscribe to."""
    return "watched"


@server.prompt()
def test_simple_prompt() -> str:
    """A prompt."""
    return "This is a simple prompt for testing."


@server.prompt()
def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    """A prompt made of its arguments."""
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


@server.prompt()
def test_prompt_with_embedded_resource(resourceUri: str) -> list[UserMessage]:  # noqa: N803  # the scenario names it
    """A prompt with a resource in it."""
    inside = embedded(resourceUri, "Embedded resource content for testing.")
    return [UserMessage(content=inside), UserMessage(content=text("Please process the embedded resource above."))]


@server.prompt()
def test_prompt_with_image() -> list[UserMessage]:
    """A prompt with an image in it."""
    return [UserMessage(content=image()), UserMessage(content=text("Please analyze the image above."))]


@server.completion()
async def complete(ref: Any, argument: Any, context: Any) -> Completion:
    """Suggest words."""
    words = ["testing", "tested"]
    return Completion(values=[word for word in words if word.startswith(argument.value)], total=2, has_more=False)


async def accept(ctx: Any, params: Any) -> EmptyResult:
    """Subscriptions and log levels are taken note of by nobody; the scenarios want the answer only."""
    return EmptyResult()


def main() -> None:
    warnings.simplefilter("ignore")
    give_schemas()
    lowlevel = server._lowlevel_server
    lowlevel.add_request_handler("logging/setLevel", SetLevelRequestParams, accept)
    lowlevel.add_request_handler("resources/subscribe", SubscribeRequestParams, accept)
    lowlevel.add_request_handler("resources/unsubscribe", UnsubscribeRequestParams, accept)
    app = server.streamable_http_app()
    a_store_each(server.session_manager)
    logging.disable(logging.ERROR)
    serve(app, int(sys.argv[1]))


if __name__ == "__main__":
    main()
