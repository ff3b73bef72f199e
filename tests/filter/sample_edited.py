"""A session in which messages were changed on the way, for the table in docs/filter.md."""

from typing import Any, Final

from mcpsniff.capture.records import Record
from tests.edited import Session


def _request(number: object, method: str = "tools/call", **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def _sample() -> list[Record]:
    said = Session()
    client, server = {"name": "c", "version": "1"}, {"name": "s", "version": "1"}
    said.ask(0, "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=client)
    said.answer(0, protocolVersion="2025-11-25", capabilities={"tools": {}}, serverInfo=server)
    said.say("c2s", {"jsonrpc": "2.0", "method": "notifications/initialized"})
    said.ask(1, name="weather", arguments={"city": "Bern"})
    said.change(_request(1, name="weather", arguments={"city": "Basel"}), by="rule 1", why="no Bern").answer(1)
    said.ask(2, name="remove").change(None, by="block", why="tool:remove")
    refusal = {"jsonrpc": "2.0", "id": 2, "error": {"code": -32602, "message": "Unknown tool: remove"}}
    said.add("s2c", refusal, by="block", why="tool:remove")
    said.ask(3, name="sleep").hold(2_000_000, by="break").answer(3)
    said.ask(4, name="lost").change(None, by="faults", why="fault drop (p=0.1)")
    said.add("c2s", _request("mcpsniff-1", "ping"), by="probe.py").answer("mcpsniff-1")
    said.change(None, by="probe.py", why="the answer to a request that it had made")
    log = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "secret"}}
    said.say("s2c", log).change(None, by="mask_secrets")
    return said.ask(5, name="echo").answer(5).end().records


SAMPLE: Final = _sample()
