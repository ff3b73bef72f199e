"""A session with everything that a filter can ask for, made by hand: docs/filter.md counts on it."""

import json

from mcpsniff.capture.records import Record
from tests.sessions import CHANNEL, OPENS

HEADER = {"transport": "stdio", "argv": ["python", "weather.py"], "started": "2026-11-29T10:00:00.000000Z"}


def request(number: object, method: str, **params: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def call(number: object, tool: str, token: str | None = None, **arguments: object) -> dict[str, object]:
    meta = {} if token is None else {"_meta": {"progressToken": token}}
    return request(number, "tools/call", name=tool, arguments=arguments, **meta)


def result(number: object, **members: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": number, "result": members}


def said(number: object, text: str, **members: object) -> dict[str, object]:
    return result(number, content=[{"type": "text", "text": text}], **members)


def error(number: object, code: int, message: str) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": message}}


def notification(method: str, **params: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "method": f"notifications/{method}", "params": params}


def tool(name: str) -> dict[str, object]:
    return {"name": name, "inputSchema": {"type": "object"}}


# Time in milliseconds, who, what: an object as JSON with escapes, bytes as they are.
OPENING = [
    (
        10,
        "c2s",
        request(
            0,
            "initialize",
            protocolVersion="2025-06-18",
            capabilities={"sampling": {}, "roots": {}},
            clientInfo={"name": "c", "version": "1"},
        ),
    ),
    (
        30,
        "s2c",
        result(
            0,
            protocolVersion="2025-06-18",
            capabilities={"tools": {}, "resources": {"subscribe": True}, "prompts": {}, "logging": {}},
            serverInfo={"name": "weather", "version": "2"},
        ),
    ),
    (31, "c2s", notification("initialized")),
    (100, "c2s", request(1, "tools/list")),
    (140, "s2c", result(1, tools=[tool("echo"), tool("get_weather"), tool("sleep"), tool("dump")])),
]
TOOLS = [
    (1000, "c2s", call(2, "echo", text="hello")),
    (1002, "s2c", said(2, "hello")),
    (2000, "c2s", call(3, "get_weather", city="北京")),
    (2350, "s2c", '{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"北京:晴"}]}}\n'.encode()),
    (3000, "c2s", call(4, "sleep", "p4", seconds=3)),
    (3500, "s2c", notification("progress", progressToken="p4", progress=1)),
    (4000, "s2c", notification("progress", progressToken="p4", progress=2)),
    (6200, "s2c", said(4, "slept")),
    (7000, "c2s", call(5, "sleep", seconds=60)),
    (8500, "c2s", notification("cancelled", requestId=5, reason="the user lost patience")),
    (8900, "s2c", said(5, "slept after all")),
]
RESOURCES = [
    (10_000, "c2s", request("7", "resources/read", uri="file:///notes/北京.txt")),
    (10_020, "s2c", result("7", contents=[{"uri": "file:///notes/北京.txt", "text": "notes"}])),
    (11_000, "c2s", request(7, "resources/read", uri="file:///missing")),
    (11_010, "s2c", error(7, -32002, "Resource not found")),
    (12_000, "c2s", request(8, "resources/subscribe", uri="file:///log")),
    (12_005, "s2c", result(8)),
    (13_000, "s2c", notification("resources/updated", uri="file:///log")),
    (14_000, "c2s", request(9, "prompts/get", name="greet")),
    (14_010, "s2c", result(9, messages=[])),
]
SERVER = [
    (15_000, "s2c", request(1, "sampling/createMessage", messages=[], maxTokens=9)),
    (16_500, "c2s", result(1, role="assistant", content={"type": "text", "text": "hi"}, model="m")),
    (17_000, "s2c", request(2, "roots/list")),
    (17_010, "c2s", error(2, -32601, "Method not found")),
    (17_500, "s2c", notification("message", level="warning", data="disk is filling")),
    (18_000, "s2c", b"weather server ready\n"),
    (18_100, "err", "Traceback: 北京 not in cache\n".encode()),
    (18_200, "err", b"retrying\n"),
    (19_000, "s2c", b"\n"),
]
REST = [
    (20_000, "c2s", [request(10, "ping"), call(11, "echo", text="one of two")]),
    (20_010, "s2c", [result(10), said(11, "one of two")]),
    (22_000, "c2s", call(12, "get_weather", city="Atlantis")),
    (22_700, "s2c", said(12, "no such city", isError=True)),
    (23_000, "c2s", call(13, "dump")),
    (23_050, "s2c", said(13, "x" * 70_000)),
    (24_000, "c2s", call(14, "echo", text="nobody answers")),
]

END = [
    Record(24_500_000, "comment", None, {"text": "restarted the router here", "by": "me"}),
    Record(30_000_000, "close", 0, {"how": "eof"}),
    Record(30_200_000, "close", 1, {"how": "exit", "status": 1}),
]


def record(ms: int, who: str, what: object) -> Record:
    data = what if isinstance(what, bytes) else json.dumps(what).encode() + b"\n"
    return Record(ms * 1000, "chunk", CHANNEL[who], data)


SAMPLE: list[Record] = [*OPENS, *(record(*one) for one in (*OPENING, *TOOLS, *RESOURCES, *SERVER, *REST)), *END]
