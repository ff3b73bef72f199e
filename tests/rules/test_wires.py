"""Rules on every transport: what both sides get, what people read, and what is said at the end."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import run
from tests.relay.wires import Wire, wire
from tests.rules.staging import call, request, result

USED = ("stdio", "sse", "json", "streams", "streams-tls")
RULES = """
[[rule]]
name = "late"
when = 'tool:slow kind:response'
delay = "20ms"

[[rule]]
name = "unsaid"
when = 'method:notifications/message'
drop = true

[[rule]]
when = 'kind:response tool:echo'
replace = { "alice" = "bob" }

[[rule]]
name = "never"
when = 'tool:nowhere'
drop = true
"""


def texts(*said: Any) -> list[bytes]:
    return [json.dumps(one, separators=(",", ":")).encode() for one in said]


@pytest.fixture(scope="module", params=USED)
def between(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wire]:
    """One session for all rules; its capture is looked at when it is over."""
    folder = tmp_path_factory.mktemp("rules")
    file = folder / "rules.toml"
    file.write_text(RULES, encoding="utf-8")
    options = [
        "--rules", str(file), "--block", "tool:shell", "--map-tool", "echo=say", "--set-argument", 'say.city="Paris"',
        "--respond", 'method:ping={"pong":1.0}',
    ]  # fmt: skip
    with wire(request.param, folder, *options) as through:
        yield through


def test_a_list_is_shorter_and_has_other_names(between: Wire) -> None:
    between.client.send(*texts(request("list", "tools/list")))
    assert json.loads(between.server.take())["method"] == "tools/list"
    between.server.send(
        b'{"jsonrpc":"2.0","id":"list","result":{"tools":[{"name":"shell"}, {"name":"echo", "x":1.0}],"nextCursor":""}}'
    )
    assert between.client.take() == (
        b'{"jsonrpc":"2.0","id":"list","result":{"tools":[{"name":"say", "x":1.0}],"nextCursor":""}}'
    )


def test_a_call_is_refused_and_another_one_answered_without_the_server(between: Wire) -> None:
    between.client.send(*texts(call("no", "shell")))
    assert json.loads(between.client.take())["error"] == {"code": -32602, "message": "Unknown tool: shell"}
    between.client.send(*texts(request("ping", "ping")))
    assert json.loads(between.client.take()) == {"jsonrpc": "2.0", "id": "ping", "result": {"pong": 1.0}}
    assert between.server.rest() == []


def test_a_call_is_renamed_and_has_an_argument_more_and_its_answer_says_less(between: Wire) -> None:
    between.client.send(b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name": "say","arguments":{"b":12}}}')
    assert between.server.take() == (
        b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name": "echo","arguments":{"b":12,"city":"Paris"}}}'
    )
    between.server.send(b'{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"alice \\u0061lice"}]}}')
    got = between.client.take()
    assert json.loads(got)["result"]["content"][0]["text"] == "alice alice", "rules call a tool as the client does"


def test_a_late_answer_and_one_that_is_dropped(between: Wire) -> None:
    between.client.send(*texts(call(8, "slow")))
    assert json.loads(between.server.take())["id"] == 8
    between.server.send(*texts({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info"}}))
    between.server.send(*texts(result(8, content=[])))
    assert [between.client.take()] == texts(result(8, content=[]))
    assert between.client.rest() == []


def test_the_capture_and_the_end_tell_of_all_of_it(between: Wire) -> None:
    capture = between.finish()
    edits = {(body["by"], body.get("why")) for _, kind, _, body in capture.records if kind in ("rewrite", "hold")}
    assert {
        ("--block tool:shell", "blocked: tool shell"),
        ("map-tool + --block tool:shell", "tool echo is say for the client; hidden: tool shell"),
        ("map-tool + --set-argument say.city", "tool say is echo for the server; set params.arguments.city"),
        ("--respond method:ping", "answered"),
        ("late", "delayed"),
        ("unsaid", "dropped"),
    } <= edits
    (remark,) = [body["text"] for _, kind, _, body in capture.records if kind == "comment"]
    assert "**" not in "".join(str(body["data"]) for _, kind, _, body in capture.records if kind == "rewrite")
    assert remark.startswith("rules: --map-tool echo=say; late; unsaid; rules.toml #3; never; --block tool:shell; ")
    shown = run("show", str(capture.path))
    assert (shown.status, shown.out.count("--block tool:shell") > 3) == (0, True)
    assert "the rule never matched nothing" in between.said
    assert "--block tool:shell: 2 messages" in between.said


def test_headers_of_http_are_set_and_routing_headers_stay_true(tmp_path: Path) -> None:
    file = tmp_path / "rules.toml"
    file.write_text("[[rule]]\nwhen = 'tool:pay'\nheader = { X-Dry-Run = '1', Accept = false }\n", encoding="utf-8")
    options = ["--rules", str(file), "--set-header", "X-Tenant=secret value", "--map-tool", "echo=say"]
    with wire("json", tmp_path, *options) as between:
        for number, tool in enumerate(("pay", "say")):
            between.client.send(*texts(call(number, tool)))
            between.server.take()
            between.server.send(*texts(result(number)))
            between.client.take()
        pay, say = [head for head in between.server.heads if head.method == "POST"]
        (stream,) = [head for head in between.server.heads if head.method == "GET"]
        capture = between.finish()
    assert [head.get("x-tenant") for head in (stream, pay, say)] == ["secret value"] * 3
    assert [(head.get("x-dry-run"), head.get("accept") is None) for head in (pay, say)] == [
        ("1", True),
        (None, False),
    ]
    assert (pay.get("mcp-name"), say.get("mcp-name")) == ("pay", "echo")
    assert "--set-header X-Tenant: 3 HTTP requests" in between.said
    assert all("secret value" not in json.dumps(body) for _, kind, _, body in capture.records if kind == "comment")
    shown = run("show", str(capture.path))
    assert shown.status == 0
