"""What users of SDK clients read where mcpsniff answers in a server's place."""

import socket
from pathlib import Path

import pytest

from tests.peers.harness import hold
from tests.peers.sessions import Plan
from tests.proxy.relayed import Relay

SHOWS = ("sdk2", "sdk2-auto", "ts1", "ts2")
"""Those that show what is in the body of a refusal; SDK 1.x of Python shows the status alone."""


@pytest.fixture(scope="module")
def nobody() -> int:
    """A port at which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


@pytest.mark.parametrize("client", SHOWS)
def test_the_user_is_told_that_the_server_is_not_reached(tmp_path: Path, nobody: int, client: str) -> None:
    with Relay(tmp_path, f"http://127.0.0.1:{nobody}/mcp") as relay:
        plan = Plan("nobody", tmp_path, "http", f"http://127.0.0.1:{relay.port}/mcp", [])
        (outcome,) = hold(client, [plan])
    assert outcome.said is None
    assert f"mcpsniff: cannot reach the upstream http://127.0.0.1:{nobody}" in outcome.failed
