"""Every JSON-RPC vector: its kind, its id with its type, its flaws in every revision, the kinds of its elements."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from mcpsniff.protocol.by_revision import revision_flaws
from mcpsniff.protocol.jsonrpc import classify
from mcpsniff.protocol.message import Message
from mcpsniff.protocol.meta import is_modern
from mcpsniff.protocol.reading import JsonReader
from mcpsniff.protocol.revisions import REVISIONS
from mcpsniff.wire.ndjson import LineSplitter

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "protocol-vectors.json").read_text())["jsonrpc"][
    "vectors"
]
OUR_WORD = {"result": "response"}


def messages_of(vector: dict[str, Any]) -> list[Message]:
    raw = vector["text"].encode() if "text" in vector else base64.b64decode(vector["b64"])
    (frame,) = LineSplitter(0, "c2s").feed(0, raw + b"\n")
    if "empty-line" in frame.flaws:
        return []
    return classify(frame, JsonReader())


def flaws_of(message: Message, revision: str | None = None) -> set[str]:
    flaws = set(message.flaws) | set(revision_flaws(message, revision) if revision else ())
    # Ours alone: the list has no word for an error without an id where the revision allows it.
    return flaws - {"error-id-absent"}


@pytest.mark.parametrize("vector", [v for v in VECTORS if v["kind"] != "empty"], ids=lambda v: v["name"])
def test_vector(vector: dict[str, Any]) -> None:
    whole, *elements = messages_of(vector)

    assert OUR_WORD.get(vector["kind"], vector["kind"]) == whole.kind
    assert set(vector["flags"]) == flaws_of(whole)
    if "id" in vector:
        assert whole.id is not None
        assert (type(vector["id"]), vector["id"]) == (type(json.loads(whole.id)), json.loads(whole.id))
    for revision in REVISIONS:
        further = set(vector.get("flags_by_version", {}).get(revision, ()))
        assert set(vector["flags"]) | further == flaws_of(whole, revision), revision
    assert [OUR_WORD.get(kind, kind) for kind in vector.get("elements", ())] == [one.kind for one in elements]
    if vector.get("era") == "modern":
        assert is_modern(whole.meta)


@pytest.mark.parametrize("vector", [v for v in VECTORS if v["kind"] == "empty"], ids=lambda v: v["name"])
def test_a_blank_line_is_a_frame_and_no_message(vector: dict[str, Any]) -> None:
    (frame,) = LineSplitter(0, "c2s").feed(0, vector["text"].encode() + b"\n")

    assert set(vector["flags"]) == set(frame.flaws)
    assert messages_of(vector) == []
