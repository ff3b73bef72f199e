"""How a conversation opens: in order, hurried, refused, modern."""

from typing import Any

import pytest

from mcpsniff.decoder import Decoder
from tests.sessions import decode, findings, records

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}},
}
RESULT = {
    "jsonrpc": "2.0",
    "id": 0,
    "result": {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}},
}
REFUSAL = {"jsonrpc": "2.0", "id": 0, "error": {"code": -32602, "message": "no"}}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}
CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
VERSION = "io.modelcontextprotocol/protocolVersion"
MODERN: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 2,
    "method": "tools/list",
    "params": {
        "_meta": {
            VERSION: "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        }
    },
}


@pytest.mark.parametrize(
    ("said", "state", "revision"),
    [
        ([], "closed", None),
        ([("c2s", INITIALIZE)], "handshake", None),
        ([("c2s", INITIALIZE), ("s2c", RESULT)], "handshake", "2025-06-18"),
        ([("c2s", INITIALIZE), ("s2c", RESULT), ("c2s", INITIALIZED)], "active", "2025-06-18"),
        ([("c2s", INITIALIZE), ("c2s", INITIALIZED)], "handshake", None),
        ([("c2s", INITIALIZE), ("c2s", INITIALIZED), ("s2c", RESULT)], "active", "2025-06-18"),
        ([("c2s", INITIALIZE), ("s2c", REFUSAL)], "failed", None),
        ([("c2s", INITIALIZE), ("s2c", REFUSAL), ("c2s", MODERN)], "active", "2026-07-28"),
        ([("c2s", MODERN)], "active", "2026-07-28"),
    ],
)
def test_states_and_the_revision_that_was_settled(
    said: list[tuple[str, object]], state: str, revision: str | None
) -> None:
    decoder = Decoder()
    decode(records(*said), decoder=decoder)

    assert (decoder.conversation.state, decoder.conversation.revision) == (state, revision)


def test_a_pipelined_handshake_is_read_whole_and_noted() -> None:
    decoder = Decoder()
    said = [("c2s", INITIALIZE), ("c2s", INITIALIZED), ("c2s", CALL), ("s2c", RESULT)]
    events = decode(records(*said), decoder=decoder)

    assert decoder.conversation.server_info == {"name": "s", "version": "1"}
    assert [one.name for one in findings(events)] == ["request-before-init-result"]


def test_a_version_that_was_never_published_does_not_replace_the_one_that_is_in_use() -> None:
    decoder = Decoder()
    asked = {**MODERN, "id": 3, "params": {"_meta": {**MODERN["params"]["_meta"], VERSION: "1900-01-01"}}}
    refused = {"jsonrpc": "2.0", "id": 3, "error": {"code": -32022, "message": "x", "data": {}}}
    decode(records(("c2s", MODERN), ("c2s", asked), ("s2c", refused)), decoder=decoder)

    assert decoder.conversation.revision == "2026-07-28"
