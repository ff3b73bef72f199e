"""The part of the conformance server that asks back within a result (2026-07-28, input-required results)."""

from collections.abc import Awaitable, Callable
from typing import Any

from mcp import MCPError
from mcp.server.mcpserver import Context, MCPServer
from mcp.types import (
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    ClientCapabilities,
    CreateMessageRequest,
    CreateMessageRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
    ListRootsRequest,
    SamplingMessage,
    TextContent,
)


def form(**properties: dict[str, Any]) -> dict[str, Any]:
    """The schema of a form whose fields are all required."""
    return {"type": "object", "properties": properties, "required": list(properties)}


def ask(message: str, **properties: dict[str, Any]) -> ElicitRequest:
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=form(**properties)))


def sample(prompt: str) -> CreateMessageRequest:
    message = SamplingMessage(role="user", content=TextContent(type="text", text=prompt))
    return CreateMessageRequest(params=CreateMessageRequestParams(messages=[message], max_tokens=100))


NAME = ask("What is your name?", name={"type": "string"})
OK = ask("Please confirm.", ok={"type": "boolean"})
COLOUR = ask("What is your favourite colour?", color={"type": "string"})
CONTEXT = ask("What context should the prompt use?", context={"type": "string"})
CAPITAL = sample("What is the capital of France?")
ROOTS = ListRootsRequest()

Answer = str | InputRequiredResult


def asking(requests: dict[str, Any], state: str | None = None) -> Callable[[Context], Awaitable[Answer]]:
    """A tool that asks these questions, all at once, until each of them is answered."""

    async def tool(ctx: Context) -> Answer:
        given = ctx.input_responses or {}
        if set(requests) <= given.keys() and ctx.request_state == state:
            return f"state-ok: {given}"
        return InputRequiredResult(input_requests=requests, request_state=state)

    return tool


async def two_rounds(ctx: Context) -> Answer:
    given = ctx.input_responses or {}
    if ctx.request_state == "after 1" and "step2" in given:
        return "done"
    if ctx.request_state == "begun" and "step1" in given:
        return InputRequiredResult(input_requests={"step2": COLOUR}, request_state="after 1")
    return InputRequiredResult(input_requests={"step1": NAME}, request_state="begun")


async def what_the_client_can(ctx: Context) -> Answer:
    if ctx.input_responses:
        return "done"
    able = ctx.client_capabilities or ClientCapabilities()
    requests: dict[str, Any] = {"question": CAPITAL} if able.sampling is not None else {}
    if able.elicitation is not None:
        requests["name"] = NAME
    return InputRequiredResult(input_requests=requests, request_state="asked")


async def needs_sampling(ctx: Context) -> Answer:
    if (ctx.client_capabilities or ClientCapabilities()).sampling is None:
        lacking = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, "sampling is needed", lacking)
    return "done"


async def prompt(ctx: Context) -> Answer:
    """A prompt that asks for something first."""
    answer = (ctx.input_responses or {}).get("user_context")
    if isinstance(answer, ElicitResult):
        return f"In this context: {answer.content}"
    return InputRequiredResult(input_requests={"user_context": CONTEXT})


TOOLS: dict[str, Callable[[Context], Awaitable[Answer]]] = {
    "test_input_required_result_elicitation": asking({"user_name": NAME}),
    "test_input_required_result_sampling": asking({"capital_question": CAPITAL}),
    "test_input_required_result_list_roots": asking({"client_roots": ROOTS}),
    "test_input_required_result_request_state": asking({"confirm": OK}, "asked"),
    "test_input_required_result_tampered_state": asking({"confirm": OK}, "asked"),
    "test_input_required_result_multiple_inputs": asking(
        {"user_name": NAME, "greeting": CAPITAL, "client_roots": ROOTS}, "asked"
    ),
    "test_input_required_result_multi_round": two_rounds,
    "test_input_required_result_capabilities": what_the_client_can,
    "test_streaming_elicitation": asking({"user_name": NAME}),
    "test_missing_capability": needs_sampling,
}


def register(server: MCPServer) -> None:
    """Give the server these tools and the prompt."""
    for name, tool in TOOLS.items():
        server.tool(name=name, description="Asks back before it answers.", structured_output=False)(tool)
    server.prompt(name="test_input_required_result_prompt")(prompt)
