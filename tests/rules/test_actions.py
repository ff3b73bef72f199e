"""What rules do to messages, in one process: the options and the actions of a file."""

import json
from pathlib import Path
from typing import Any

import pytest

from mcpsniff.hooks.actions import HttpHead
from mcpsniff.hooks.editor import Interceptor
from mcpsniff.proxy.rules.reading import rules_from
from tests.rules.staging import Stage, call, request, result

NONE: dict[str, list[str]] = {
    name: [] for name in ("rules", "block", "map_tool", "set_argument", "set_header", "respond")
}


def by_options(transport: str = "stdio", **options: list[str]) -> list[Interceptor]:
    return rules_from({**NONE, **options}, transport)


def stage(transport: str = "stdio", **options: list[str]) -> Stage:
    return Stage(by_options(transport, **options), transport)


def by_file(tmp_path: Path, text: str, transport: str = "stdio") -> Stage:
    file = tmp_path / "rules.toml"
    file.write_text(text, encoding="utf-8")
    return stage(transport, rules=[str(file)])


def listing(number: Any, *names: str, **more: Any) -> dict[str, Any]:
    return result(number, tools=[{"name": name, "inputSchema": {"type": "object"}} for name in names], **more)


def names(listed: dict[str, Any]) -> list[str]:
    return [tool["name"] for tool in listed["result"]["tools"]]


# -- block -------------------------------------------------------------------------------------------------------------


def test_a_blocked_tool_is_unknown() -> None:
    between = stage(block=["tool:shell"])
    between.client(call("a", "shell", command="ls"))
    assert between.to_server() == []
    assert between.at_client() == {
        "jsonrpc": "2.0",
        "id": "a",
        "error": {"code": -32602, "message": "Unknown tool: shell"},
    }
    between.client(call(2, "echo"))
    assert between.at_server() == call(2, "echo")
    assert between.whys == ["--block tool:shell: blocked: tool shell"]


def test_a_blocked_tool_is_hidden_on_every_page() -> None:
    between = stage(block=["tool:shell", "tool:rm_*"])
    between.client(request(1, "tools/list"))
    between.server(listing(1, "echo", "shell", nextCursor="2"))
    between.client(request(2, "tools/list", cursor="2"))
    between.server(listing(2, "rm_a", "rm_b"))
    between.server({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
    between.client(request(3, "tools/list"))
    between.server(listing(3, "other", "shell"))
    first, second, changed, third = map(json.loads, between.to_client())
    assert (names(first), first["result"]["nextCursor"]) == (["echo"], "2")
    assert names(second) == []
    assert changed["method"] == "notifications/tools/list_changed"
    assert names(third) == ["other"]
    assert between.whys[1] == "--block tool:rm_*: hidden: tool rm_a, rm_b"


def test_the_list_keeps_its_text_but_for_what_is_hidden() -> None:
    between = stage(block=["tool:b"])
    between.client(request(1, "tools/list"))
    between.server(
        b'{ "jsonrpc":"2.0", "id":1,"result":{"tools":[ {"name":"a","x":1.0} , {"name":"b"} ,\t{"name":"c"} ]} }'
    )
    assert between.to_client() == [
        b'{ "jsonrpc":"2.0", "id":1,"result":{"tools":[ {"name":"a","x":1.0} ,\t{"name":"c"} ]} }'
    ]


def test_a_list_in_which_nothing_is_hidden_passes_as_it_is() -> None:
    between = stage(block=["tool:b"])
    between.client(request(1, "tools/list"))
    between.server(listing(1, "a"))
    assert between.outs == []


def test_prompts_resources_and_templates() -> None:
    between = stage(block=["prompt:greet", "resource:file:///secret/*"])
    between.client(request(1, "prompts/get", name="greet"))
    between.client(request(2, "resources/read", uri="file:///secret/a"))
    between.client(request(3, "resources/subscribe", uri="file:///secret/a"))
    between.client(request(4, "completion/complete", ref={"type": "ref/prompt", "name": "greet"}, argument={}))
    between.client(
        request(5, "completion/complete", ref={"type": "ref/resource", "uri": "file:///secret/{id}"}, argument={})
    )
    assert between.to_server() == []
    assert [json.loads(text)["error"] for text in between.to_client()] == [
        {"code": -32602, "message": "Unknown prompt: greet"},
        {"code": -32002, "message": "Resource not found", "data": {"uri": "file:///secret/a"}},
        {"code": -32002, "message": "Resource not found", "data": {"uri": "file:///secret/a"}},
        {"code": -32602, "message": "Unknown prompt: greet"},
        {"code": -32002, "message": "Resource not found", "data": {"uri": "file:///secret/{id}"}},
    ]
    between.client(request(6, "prompts/list"))
    between.client(request(7, "resources/list"))
    between.client(request(8, "resources/templates/list"))
    between.server(result(6, prompts=[{"name": "greet"}, {"name": "bye"}]))
    between.server(result(7, resources=[{"uri": "file:///secret/a", "name": "a"}, {"uri": "file:///b", "name": "b"}]))
    between.server(result(8, resourceTemplates=[{"uriTemplate": "file:///secret/{id}", "name": "t"}]))
    between.server(
        {"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": "file:///secret/a"}}
    )
    between.server({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": "file:///b"}})
    prompts, resources, templates, updated = map(json.loads, between.to_client())
    assert prompts["result"]["prompts"] == [{"name": "bye"}]
    assert resources["result"]["resources"] == [{"uri": "file:///b", "name": "b"}]
    assert templates["result"]["resourceTemplates"] == []
    assert updated["params"]["uri"] == "file:///b"


def test_since_2026_07_28_a_resource_that_is_not_there_has_another_code() -> None:
    between = stage(block=["resource:file:///a"])
    envelope = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
    between.client(request(1, "resources/read", uri="file:///a", _meta=envelope))
    assert between.at_client()["error"]["code"] == -32602


def test_an_expression_can_leave_only_some_tools() -> None:
    between = stage(block=["method:tools/call not tool:echo"])
    between.client(request(0, "tools/list"))
    between.server(listing(0, "a", "echo", "b"))
    assert names(between.at_client()) == ["echo"]
    between.client(call(1, "a"))
    between.client(call(2, "echo"))
    assert between.at_client()["error"]["message"] == "Unknown tool: a"
    assert [json.loads(text)["id"] for text in between.to_server()] == [0, 2]


def test_what_depends_on_arguments_is_refused_and_stays_listed() -> None:
    between = stage(block=['tool:shell text:"rm -rf"'])
    between.client(request(0, "tools/list"))
    between.server(listing(0, "shell"))
    assert names(between.at_client()) == ["shell"]
    between.to_server()
    between.client(call(1, "shell", command="rm -rf /"))
    assert between.at_client()["error"] == {"code": -32000, "message": "Blocked by a rule of mcpsniff"}
    between.client(call(2, "shell", command="ls"))
    assert between.at_server()["id"] == 2


def test_other_requests_in_either_direction() -> None:
    between = stage(block=["method:sampling/*", "method:notifications/message", "method:logging/setLevel"])
    between.server(request(1, "sampling/createMessage", messages=[]))
    assert between.to_client() == []
    assert between.at_server()["error"] == {"code": -32000, "message": "Blocked by a rule of mcpsniff"}
    between.client(request(2, "logging/setLevel", level="info"))
    assert between.at_client()["id"] == 2
    between.server({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": 1}})
    assert between.to_client() == []


def test_arguments_that_are_too_deep_to_be_read_are_no_way_around_a_rule() -> None:
    deep = b"[" * 20_000 + b"]" * 20_000
    text = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"%s","arguments":' + deep + b"}}"
    between = stage(block=["tool:shell"], map_tool=["echo=say"])
    between.client(text.replace(b"%s", b"shell"))
    assert between.to_server() == []
    between.client(text.replace(b"%s", b"say"))
    assert between.to_server() == [text.replace(b"%s", b"echo")]


def test_in_a_batch_only_the_one_is_refused() -> None:
    between = stage(block=["tool:shell"])
    between.client([call(1, "echo"), call(2, "shell"), call(3, "echo")])
    assert [one["id"] for one in between.at_server()] == [1, 3]
    assert between.at_client()["id"] == 2


# -- map-tool ----------------------------------------------------------------------------------------------------------


def test_a_tool_has_another_name_for_the_client() -> None:
    between = stage(map_tool=["echo=say"])
    between.client(request(0, "tools/list"))
    between.server(listing(0, "echo", "other"))
    assert names(between.at_client()) == ["say", "other"]
    between.to_server()
    between.client(b'{"jsonrpc": "2.0","id":1.0, "method":"tools/call","params":{"name": "say","arguments":{"a":1.0}}}')
    assert between.to_server() == [
        b'{"jsonrpc": "2.0","id":1.0, "method":"tools/call","params":{"name": "echo","arguments":{"a":1.0}}}'
    ]
    assert between.whys == ["map-tool: tool echo is say for the client", "map-tool: tool say is echo for the server"]


def test_the_client_does_not_know_the_name_that_a_tool_had() -> None:
    between = stage(map_tool=["echo=say"])
    between.client(call(1, "echo"))
    assert between.to_server() == []
    assert between.at_client()["error"] == {"code": -32602, "message": "Unknown tool: echo"}
    assert between.whys == ["map-tool: tool echo is say for the client"]
    odd = request(2, "tools/call", name=["echo"])
    between.client(odd)
    assert between.at_server() == odd


def test_two_tools_change_their_names_and_a_third_is_covered() -> None:
    between = stage(map_tool=["a=b", "b=a", "c=d"])
    between.client(request(0, "tools/list"))
    between.server(listing(0, "a", "b", "c", "d"))
    assert names(between.at_client()) == ["b", "a", "d"]
    between.to_server()
    for number, name in enumerate("abd"):
        between.client(call(number, name))
    assert [json.loads(text)["params"]["name"] for text in between.to_server()] == ["b", "a", "c"]
    assert "the rule --map-tool c=d: the server's own tool d was hidden" in between.editor.end()


def test_all_rules_call_a_tool_as_the_client_does() -> None:
    between = stage(map_tool=["echo=say"], block=["tool:say"], set_argument=["say.a=1"])
    between.client(request(0, "tools/list"))
    between.server(listing(0, "echo", "other"))
    assert names(between.at_client()) == ["other"]
    between.to_server()
    between.client(call(1, "say"))
    assert between.to_server() == []
    assert between.at_client()["error"]["message"] == "Unknown tool: say"
    passing = stage(map_tool=["echo=say"], set_argument=["say.a=1"])
    passing.client(call(1, "say"))
    assert passing.at_server()["params"] == {"name": "echo", "arguments": {"a": 1}}


# -- respond -----------------------------------------------------------------------------------------------------------


def test_an_answer_in_place_of_the_server(tmp_path: Path) -> None:
    file = tmp_path / "answer.json"
    file.write_text('{"content": [], "isError": true}\n', encoding="utf-8")
    between = stage(
        respond=[
            'tool:weather={"content":[],"structuredContent":{"c":"a=b"}}',
            f"method:resources/read=@{file}",
            'method:ping={"error":{"code":-1,"message":"no","data":[1]}}',
            'method:prompts/list={"error":{"code":"x"}}',
            'tool:"a=b" size:>=10={"x":1}',
        ]
    )
    between.client(call(1, "weather"))
    between.client(request(2, "resources/read", uri="x:y"))
    between.client(request(3, "ping"))
    between.client(request(4, "prompts/list"))
    between.client(call(5, "a=b"))
    assert between.to_server() == []
    assert [{**json.loads(text), "jsonrpc": None} for text in between.to_client()] == [
        {"jsonrpc": None, "id": 1, "result": {"content": [], "structuredContent": {"c": "a=b"}}},
        {"jsonrpc": None, "id": 2, "result": {"content": [], "isError": True}},
        {"jsonrpc": None, "id": 3, "error": {"code": -1, "message": "no", "data": [1]}},
        {"jsonrpc": None, "id": 4, "result": {"error": {"code": "x"}}},
        {"jsonrpc": None, "id": 5, "result": {"x": 1}},
    ]  # fmt: skip


def test_what_is_blocked_is_not_answered_twice() -> None:
    between = stage(block=["tool:a"], respond=["tool:a={}"])
    between.client(call(1, "a"))
    assert "error" in between.at_client()


# -- set-argument, set-header ------------------------------------------------------------------------------------------


def test_arguments_are_set_with_the_least_change() -> None:
    between = stage(set_argument=['city="Paris"', 'weather.day={"a": [1]}', "my.tool.x=null"])
    between.client(
        b'{"jsonrpc":"2.0", "id":1,"method":"tools/call","params":{"name":"weather",'
        b'"arguments":{"city": "Rome","n":1.0}}}'
    )
    between.client(call(2, "my.tool", x=1))
    between.client({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "none"}})
    between.client({"jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": {"name": "odd", "arguments": [1]}})
    between.client(request(5, "prompts/get", name="p", arguments={"city": "Rome"}))
    between.server(call(6, "weather", city="Rome"))
    first, *others = between.to_server()
    assert first == (
        b'{"jsonrpc":"2.0", "id":1,"method":"tools/call","params":{"name":"weather","arguments":'
        b'{"city": "Paris","n":1.0,"day": {"a":[1]}}}}'
    )
    assert [json.loads(text)["params"]["arguments"] for text in others] == [
        {"x": None, "city": "Paris"}, {"city": "Paris"}, [1], {"city": "Rome"},
    ]  # fmt: skip


def test_an_argument_that_is_so_already_is_no_change() -> None:
    between = stage(set_argument=["a=1"])
    between.client(call(1, "t", a=1))
    assert [out.what for out in between.outs] in ([], ["same"])
    assert between.to_server() == [json.dumps(call(1, "t", a=1), separators=(",", ":")).encode()]


def test_values_are_copied_for_each_message() -> None:
    rules = by_options(set_argument=['a={"list":[]}'])
    for _ in range(2):
        between = Stage(rules)
        between.client(call(1, "t"))
        (out,) = between.outs
        assert out.message is not None
        out.message.body["params"]["arguments"]["a"]["list"].append("changed by somebody else")
        assert between.at_server()["params"]["arguments"]["a"] == {"list": []}


def test_headers_of_all_requests() -> None:
    rules = by_options("http", set_header=["X-New=a=b", "Authorization", "user-agent="])
    between = Stage(rules, "http")
    head = HttpHead("c2s", "POST", "/mcp", None, [("Host", "x"), ("authorization", "secret"), ("User-Agent", "me")])
    between.editor.edit_head(head)
    assert head.headers == [("Host", "x"), ("X-New", "a=b")]
    answered = HttpHead("s2c", "POST", "/mcp", 200, [("Content-Type", "x")])
    between.editor.edit_head(answered)
    assert answered.headers == [("Content-Type", "x")]
    (told,) = between.editor.end()
    names = ("X-New", "Authorization", "user-agent")
    assert told == "rules acted on " + "; ".join(f"--set-header {name}: 1 HTTP request" for name in names)
    assert "a=b" not in "".join(between.remarks), "the values of headers may be secret"


# -- files -------------------------------------------------------------------------------------------------------------

FILE = """
[[rule]]
name = "no deletions"
when = 'tool:delete_*'
block = "Deleting is not allowed here"

[[rule]]
when = 'kind:response tool:search'
set = { "result.isError" = true, "result.content[0].text" = "nothing", "result.tools[*].x" = 1 }

[[rule]]
when = 'kind:response tool:fetch'
remove = ["result.structuredContent", "result.content[*].annotations", "**.secret"]

[[rule]]
when = 'tool:fetch'
replace = { "alice" = "bob", "x@y.org" = "hidden" }
why = "no names"

[[rule]]
when = 'method:notifications/message text:noise'
drop = true

[[rule]]
when = 'tool:flaky kind:request'
after = 1
times = 2
respond = { error = { code = -32000, message = "later" } }

[[rule]]
map = { own = "theirs" }
"""


def test_the_actions_of_a_file(tmp_path: Path) -> None:
    between = by_file(tmp_path, FILE)
    between.client(call(1, "delete_all"))
    assert between.at_client()["error"] == {"code": -32602, "message": "Deleting is not allowed here"}
    assert between.whys[-1] == "no deletions: blocked: tool delete_all"

    between.client(call(2, "search"))
    assert between.at_server() == call(2, "search"), "there is no result in a request, and none is made"
    between.server(b'{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text", "text":"found"}],"tools":[{},7]}}')
    (text,) = between.to_client()
    assert text == (
        b'{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text", "text":"nothing"}],"tools":[{"x":1},7],'
        b'"isError":true}}'
    )
    assert between.whys[-1] == "rules.toml #2: set result.isError, result.content[0].text, result.tools[*].x"

    between.client(call(3, "fetch", name="alice", deep={"secret": 1}))
    assert between.at_server()["params"] == {"name": "fetch", "arguments": {"name": "bob", "deep": {"secret": 1}}}
    assert between.whys[-1] == "rules.toml #4: no names"
    content = [{"type": "text", "text": "from alice, x@y.org", "annotations": {"a": 1}}, {"type": "text", "text": "b"}]
    between.server(result(3, content=content, structuredContent={"alice": "alice"}, more=[{"secret": 1, "y": 2}]))
    assert between.at_client()["result"] == {
        "content": [{"type": "text", "text": "from bob, hidden"}, {"type": "text", "text": "b"}],
        "more": [{"y": 2}],
    }

    between.server({"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "noise"}})
    assert between.to_client() == []
    between.server({"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "news"}})
    assert between.at_client()["params"] == {"data": "news"}

    for number in range(10, 15):
        between.client(call(number, "flaky"))
    assert [json.loads(text)["id"] for text in between.to_server()] == [10, 13, 14]
    assert [json.loads(text)["error"]["message"] for text in between.to_client()] == ["later", "later"]

    between.client(call(20, "theirs"))
    assert between.at_server()["params"]["name"] == "own"


def test_the_end_tells_what_acted_and_what_did_not(tmp_path: Path) -> None:
    between = by_file(
        tmp_path,
        """
        [[rule]]
        when = "tool:a"
        block = true
        [[rule]]
        when = "tool:b"
        drop = true
        [[rule]]
        when = "tool:c kind:response"
        respond = {}
        [[rule]]
        when = "tool:c"
        times = 1
        after = 5
        drop = true
        [[rule]]
        when = "tool:c"
        remove = "params.nothing"
        """,
    )
    between.client(call(1, "a"))
    between.client(call(2, "a"))
    between.client(call(3, "c"))
    between.server(result(3))
    assert between.editor.end() == [
        "rules acted on rules.toml #1: 2 messages",
        "the rule rules.toml #2 matched nothing",
        "the rule rules.toml #3 did nothing: it acts on requests, and matched 1 other",
        "the rule rules.toml #4 did nothing: its turn did not come: it matched 2 messages",
        "the rule rules.toml #5 did nothing: it acts on messages that have such a member, and matched 2 others",
    ]  # fmt: skip
    assert between.remarks == ["rules: rules.toml #1; rules.toml #2; rules.toml #3; rules.toml #4; rules.toml #5"]


def test_a_delayed_message_is_held_until_its_time_or_until_nobody_is_left(tmp_path: Path) -> None:
    between = by_file(tmp_path, '[[rule]]\nwhen = "tool:slow kind:request"\ndelay = "1ms"\n')
    between.client(call(1, "slow"))
    between.client(call(2, "quick"))
    assert between.lane.holds == 1
    assert [json.loads(text)["id"] for text in between.to_server()] == [1, 2]
    assert between.whys == ["rules.toml #1: delayed"]
    gone = by_file(tmp_path, '[[rule]]\nwhen = "tool:slow"\ndelay = "1h"\n')
    gone.lane.is_gone = True
    gone.client(call(1, "slow"))
    assert gone.lane.holds == 1, "it came back"
    assert (between.lane.told, gone.lane.told) == ([], [("rules.toml #1", "delayed")])


def test_headers_of_some_messages(tmp_path: Path) -> None:
    between = by_file(
        tmp_path,
        """
        [[rule]]
        when = 'tool:a'
        header = { X-A = "1", X-B = false }
        [[rule]]
        header = { X-All = "é" }
        """,
        "http",
    )
    between.client(call(1, "a"))
    between.server(result(1))
    (out,) = between.outs
    assert out.headers == {"X-A": "1", "X-B": None}
    head = HttpHead("c2s", "GET", "/mcp", None, [])
    between.editor.edit_head(head)
    assert head.headers == [("X-All", "é")]


def test_files_come_before_other_options_in_their_order(tmp_path: Path) -> None:
    file = tmp_path / "one.toml"
    file.write_text('[[rule]]\nwhen="tool:a"\nrespond={ x = 1 }\n', encoding="utf-8")
    between = stage(rules=[str(file)], block=["tool:a"])
    between.client(call(1, "a"))
    assert between.at_client()["result"] == {"x": 1}


def test_an_answer_from_a_file_stands_beside_the_rules(tmp_path: Path) -> None:
    (tmp_path / "answer.json").write_text('{"y": 2}', encoding="utf-8")
    between = by_file(tmp_path, '[[rule]]\nwhen="tool:a"\nrespond="@answer.json"\n')
    between.client(call(1, "a"))
    assert between.at_client()["result"] == {"y": 2}


@pytest.mark.parametrize("text", ["noise", "7", '"x"', "[]", "{}", '{"jsonrpc":"2.0"}'])
def test_what_is_no_message_passes(text: str, tmp_path: Path) -> None:
    between = by_file(tmp_path, FILE)
    between.client(text.encode())
    assert between.to_server() == [text.encode()]
