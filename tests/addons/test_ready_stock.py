"""The ready addons in a stock mitmdump, beside mcp_capture.py: the same files, and the same to see for both sides."""

import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from mcpsniff.capture.records import AND
from tests.addons.stock import ADDONS, Mitmdump
from tests.addons.test_ready import KEY, answer, call, heard, listed, said
from tests.proxy.relayed import Upstream
from tests.proxy.wrapped import PATIENCE, wait_for
from tests.relay.wires import WebClient, WebServer, Wire

SETTINGS = {
    "block_tool": ["block_tool=delete_all"],
    "rename_tools": ["rename_tool=search=find"],
    "inject_trace": [],
    "mask_secrets": ["mask_what=api-keys", "mask_side=server"],
    "approve": ["approve_with=false", "approve_tool=write_file"],
    "budget": ["budget_calls=5"],
    "slow_calls": ["slow_ms=0"],
    "count_methods": [],
}


@pytest.fixture(scope="module", params=["json", "streams"])
def both(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> "Iterator[tuple[Wire, Mitmdump]]":
    """All of them at once, in front of one server."""
    folder = tmp_path_factory.mktemp("stock")
    server = WebServer(request.param)
    words: list[str] = []
    for name, settings in SETTINGS.items():
        words += ["-s", str(ADDONS / f"{name}.py"), *(word for each in settings for word in ("--set", each))]
    words += ["-s", str(ADDONS / "record_fixture.py"), "--set", f"fixture_dir={folder / 'fixtures'}"]
    with Upstream(server.play) as upstream, Mitmdump(folder, upstream.url, *words) as dump:
        client = WebClient(request.param, lambda: socket.create_connection(("127.0.0.1", dump.port), PATIENCE))
        assert server.has_stream.wait(PATIENCE), dump.log
        yield Wire(client, server, None), dump
        client.close()


def test_all_do_their_work(both: tuple[Wire, Mitmdump]) -> None:
    between, dump = both
    assert listed(between, "echo", "delete_all", "search") == ["echo", "find"]
    call(between, 1, "delete_all")
    assert said(between)["error"]["message"] == "Unknown tool: delete_all"
    call(between, 2, "write_file")
    assert "was not approved" in said(between)["error"]["message"]
    call(between, 3, "find")
    request = heard(between)
    assert request["params"]["name"] == "search"
    assert request["params"]["_meta"]["traceparent"].startswith("00-")
    answer(between, 3, content=[KEY])
    assert said(between)["result"] == {"content": ["***"]}
    assert wait_for(lambda: "slow: " in dump.log and "wrote " in dump.log), dump.log
    assert dump.stop() == 0, dump.log
    log = dump.log
    assert "Traceback" not in log
    assert "tools/call find" in log
    records = _records(dump)
    assert {name for _, kind, _, body in records if kind == "rewrite" for name in body["by"].split(AND)} >= {
        "block_tool",
        "approve",
        "rename_tools",
        "inject_trace",
        "mask_secrets",
    }


def _records(dump: Mitmdump) -> list[list[Any]]:
    (path,) = dump.folder.glob("*.mcpcap")
    return [json.loads(line)[:4] for line in path.read_text().splitlines()[1:]]
