"""All JSON-RPC vectors through the JSON output: the kinds are those of the vectors, and every line is strict JSON."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from tests.sessions import records
from tests.transcript.rendering import json_lines, of_type

FILE = Path(__file__).resolve().parents[1] / "vectors" / "protocol-vectors.json"
VECTORS: list[dict[str, Any]] = json.loads(FILE.read_text(encoding="utf-8"))["jsonrpc"]["vectors"]
KINDS = {"result": "response"}


@pytest.mark.parametrize("vector", VECTORS, ids=[vector["name"] for vector in VECTORS])
def test_vector(vector: dict[str, Any]) -> None:
    raw = base64.b64decode(vector["b64"]) if "b64" in vector else vector["text"].encode()
    messages = of_type(json_lines(records(("c2s", raw + b"\n")), payload=True), "message")
    if vector["kind"] == "empty":
        assert messages == []
        return
    message, *elements = messages
    assert message["kind"] == KINDS.get(vector["kind"], vector["kind"])
    assert [element["kind"] for element in elements] == [KINDS.get(kind, kind) for kind in vector.get("elements", [])]
    assert ("payload" in message) != ("payload_text" in message)
    if "id" in vector and "id" in message:
        assert json.dumps(message["id"]) == json.dumps(vector["id"])
    elif "id" in vector:
        assert "id_text" in message
