"""`mcpsniff http` in front of servers that do not do what they should, and of one with an IPv6 address."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mcpsniff.proxy.address import parse_upstream
from mcpsniff.proxy.mitm import handshakes
from mcpsniff.proxy.mitm.place import Place
from mcpsniff.proxy.mitm.reverse import serve
from mcpsniff.proxy.recorder import Recorder
from tests.mitm.certificates import Authority
from tests.mitm.terminator import Terminator
from tests.proxy.relayed import Peer, Upstream, answer, echo, post
from tests.proxy.wrapped import PATIENCE, wait_for

PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'


class Relayed:
    """A relay in front of ``url``, what it recorded, and a client of it."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._records: list[tuple[int, str, int | None, Any]] = []

    def connect(self) -> Peer:
        return Peer(socket.create_connection(self._place.bound, PATIENCE))

    def ask(self) -> tuple[int | None, str]:
        with self.connect() as peer:
            peer.send(post(PING))
            head, body = peer.next_message()
        return head.status, body.decode()

    def remarks(self) -> list[str]:
        self._records += self._place.recorder.take()[0]
        return [what["text"] for _, kind, _, what in self._records if kind == "comment"]


@contextmanager
def relayed(url: str, ca: Authority | None = None) -> Iterator[Relayed]:
    place = Place(parse_upstream(url), "127.0.0.1", 0, keep_host=None, allowed=())
    place.recorder = Recorder()
    engine = serve([place], {"upstream_ca": None if ca is None else str(ca.file), "insecure": False})
    try:
        yield Relayed(place)
    finally:
        engine.stop()


def test_a_server_that_lets_wait_is_told_of_once(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(handshakes, "PATIENCE", 0.2)
    with Upstream(lambda peer: peer.read_all()) as upstream:
        place = f"127.0.0.1:{upstream.port}"
        with relayed(f"https://{place}/mcp") as relay, relay.connect() as first, relay.connect() as second:
            for peer in (first, second):
                peer.send(post(PING))
            assert wait_for(lambda: len(upstream.peers) == 2 and relay.remarks())
            (told,) = relay.remarks()
    assert told == (
        f"the upstream https://{place} does not answer the TLS handshake (0 s so far); is it plain http://{place}?"
    )
    assert capfd.readouterr().err == f"mcpsniff: {told}\n"


def test_a_server_that_answers_in_plain_http_is_told_with_the_url(capfd: pytest.CaptureFixture[str]) -> None:
    def plain(peer: Peer) -> None:
        peer.read()
        peer.send(answer(b"what?", status="400 Bad Request"))

    with Upstream(plain) as upstream:
        place = f"127.0.0.1:{upstream.port}"
        with relayed(f"https://{place}/mcp?key=secret") as relay:
            told = [relay.ask(), relay.ask()]
    why = f"TLS with the upstream https://{place} failed: it answers in plain text, as servers of http:// do."
    assert told == [(502, f"mcpsniff: {why} Use http://{place}/mcp for it.\n")] * 2
    assert capfd.readouterr().err == f"mcpsniff: {why} Use http://{place}/mcp for it.\n"


def test_a_server_that_hangs_up_in_the_handshake_is_told_of() -> None:
    with Upstream(lambda peer: peer.read()) as upstream, relayed(f"https://127.0.0.1:{upstream.port}/mcp") as relay:
        status, said = relay.ask()
    assert status == 502
    assert "failed: it hangs up during the handshake. Check whether it speaks TLS at this port, or use http://" in said


def test_a_server_with_an_ipv6_address(tmp_path: Path) -> None:
    ca = Authority(tmp_path)
    try:
        terminator = Terminator(0, str(ca.issue(["::1"])), host="::1")
    except OSError:
        pytest.skip("this machine has no IPv6")
    with Upstream(echo) as upstream, terminator:
        terminator.serves(upstream.port)
        with relayed(f"https://[::1]:{terminator.port}/mcp", ca) as relay:
            assert relay.ask() == (200, PING.decode())
    with relayed(f"https://[::1]:{terminator.port}/mcp", ca) as relay:
        status, said = relay.ask()
    assert status == 502
    assert f"cannot reach the upstream https://[::1]:{terminator.port} ([::1]:{terminator.port}: " in said
