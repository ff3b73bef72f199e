"""Real clients and real servers with TLS between `mcpsniff http` and the server: the same results as without either."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.mitm.certificates import Authority
from tests.mitm.terminator import Terminator
from tests.peers.harness import RELAY, SECONDS, blaming, captured, free_port, hold, missing, running, shown, wait_for
from tests.peers.test_peers_http import Talk, serving, unusual_states

pytestmark = [pytest.mark.peers, pytest.mark.timeout(SECONDS + 40)]

TALKS = [
    Talk("sdk2", "sdk2_server", "http"),  # 2025-11-25
    Talk("sdk2-auto", "sdk2_server", "http"),  # 2026-07-28
    Talk("sdk1", "sdk1_server", "sse"),
    Talk("ts1", "everything", "http"),
]


@contextlib.contextmanager
def relayed(url: str, name: str, folder: Path) -> Iterator[str]:
    """`mcpsniff http` in front of a TLS terminator in front of the server at ``url``; gives the URL to use instead."""
    parts = urlsplit(url)
    authority, port = Authority(folder), free_port()
    with Terminator(parts.port or 80, str(authority.issue())) as terminator:
        upstream = f"{name}={terminator.url}{parts.path}"
        command = [*RELAY, upstream, "--upstream-ca", str(authority.file), "--listen", f"127.0.0.1:{port}"]
        log = folder / "mcpsniff.log"
        with running([*command, "--dir", str(folder / "captures"), "--quiet"], [], log) as process:
            wait_for(port, process, log)
            yield f"http://127.0.0.1:{port}{parts.path}"
        assert process.returncode == 0, log.read_text(errors="replace")


@pytest.mark.parametrize("talk", TALKS, ids=lambda talk: talk.name)
def test_a_session_over_tls_is_the_same_and_captured_whole(talk: Talk, tmp_path: Path) -> None:
    if not talk.installed():
        missing(f"the server {talk.server!r} or the client {talk.client!r}")
    with serving({(talk.server, talk.way)}, tmp_path) as servers:
        direct = servers[talk.server, talk.way]
        with relayed(direct, talk.name, tmp_path) as url:
            plain, secure = hold(talk.client, [talk.plan(each, tmp_path / "client") for each in (direct, url)])
    assert plain.said is not None, plain.failed
    assert secure.said == plain.said, secure.failed
    events = shown(captured(tmp_path, talk.name))
    requests = {event["n"] for event in events if event["type"] == "message" and event["kind"] == "request"}
    exchanges = [event for event in events if event["type"] == "exchange"]
    assert {exchange["request"] for exchange in exchanges} == requests
    states = [exchange["state"] for exchange in exchanges if exchange["state"] != "answered"]
    assert sorted(states) == sorted(unusual_states(talk.client, talk.server, talk.way).elements())
    assert blaming(events) == []
