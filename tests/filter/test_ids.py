"""`id:` compares as pairing does: by JSON type and exact value, whatever the number."""

import pytest

from mcpsniff.protocol.message import Message
from tests.filter.selecting import select
from tests.sessions import records


@pytest.mark.parametrize(
    ("token", "expression", "matches"),
    [
        ("1.5", "id:1.50", True),
        ("1.5", "id:1.51", False),
        ("1e1000001", "id:1e1000001", True),
        ("1e1000001", "id:1e1000002", False),
        ("36893488147419103232", "id:36893488147419103232", True),
        ("1.00000000000000000000000000000001", "id:1.00000000000000000000000000000002", False),
        ("7", "id:7.0", True),
        ("7", 'id:"7"', False),
    ],
)
def test_an_id_of_any_kind(token: str, expression: str, *, matches: bool) -> None:
    said = records(("c2s", f'{{"jsonrpc":"2.0","id":{token},"method":"ping"}}'))

    assert any(isinstance(event, Message) for event in select(said, expression)) is matches
