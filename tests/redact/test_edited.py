"""Redacted captures of edited sessions: what left is redacted as what came, and stays what it was of."""

import json
from pathlib import Path

from mcpsniff.protocol.edits import Edit
from tests.edited import Session
from tests.redact.planted import events, redacted

SECRET = "sk-live-4eC39HqLyjWDarjtT1zdp7dc"


def call(**arguments: str) -> dict[str, object]:
    params = {"name": "t", "arguments": arguments}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


def test_what_left_and_why_is_redacted_and_still_fits(tmp_path: Path) -> None:
    said = Session().ask(1, name="t", arguments={"mail": "alice@example.com", "city": "Bern"})
    said.change(call(mail="bob@example.com", city="Basel", api_key=SECRET), by="addon", why="for carol@example.com")
    said.ask(2, name="u", arguments={"mail": "alice@example.com"}).hold(5_000, why="asked dave@example.com")
    said.answer(1).end()
    got = redacted(tmp_path, said.records)
    text = got.path.read_text(encoding="utf-8")
    for secret in ("alice@", "bob@", "carol@", "dave@", SECRET):
        assert secret not in text
    changed, held = [event for event in events(got.path) if isinstance(event, Edit)]
    assert changed.of is not None
    assert set(changed.members) == {"params.arguments.mail", "params.arguments.city", "params.arguments.api_key"}
    assert changed.message is not None
    assert changed.message.body["params"]["arguments"]["city"] == "Basel"
    assert held.of is not None
    assert held.of.id == "2"
    assert "redacted" in held.why
    assert json.loads(text.splitlines()[0])["redacted"]["places"] >= 6
