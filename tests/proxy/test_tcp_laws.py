"""Laws of the relay: whatever two peers do, each gets what the other sent and how that ended, and nothing is left."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.proxy.relayed import Peer, Relay, Upstream, closes, get
from tests.proxy.wrapped import wait_for

LARGE = b"x" * 300_000
HALF_CLOSE, RESET, CLOSE = "half-close", "reset", "close"

SENDS = st.lists(st.binary(min_size=1, max_size=300) | st.sampled_from([b"GET / HTTP/1.1\r\n\r\n", LARGE]), max_size=4)
ACTS = st.tuples(SENDS, st.sampled_from([HALF_CLOSE, RESET, CLOSE]))


class Act:
    """What a peer did, and how it fared."""

    def __init__(self, connect: Callable[[], Peer], sends: list[bytes], end: str) -> None:
        self.sent = b""
        self.came = b""
        self.outcome = "was reset"
        try:
            peer = connect()
        except ConnectionResetError:  # by a server that is so quick
            return
        try:
            for piece in sends:
                peer.send(piece)
                self.sent += piece
            if end == RESET:
                peer.reset()
                self.outcome = RESET
                return
            peer.half_close()
            if end == HALF_CLOSE:
                peer.read_all()
            self.outcome = end
        except TimeoutError:
            self.outcome = "waited in vain"
        except OSError:
            pass
        finally:
            self.came = peer.came
            peer.socket.close()


class Stage:
    """A relay between peers that act as they are told, one connection after the other."""

    def __init__(self, folder: Path) -> None:
        self.plan: tuple[list[bytes], str] = ([], CLOSE)
        self.server: Act | None = None
        self.done = threading.Event()
        self.upstream = Upstream(self._serve)
        self.relay = Relay(folder, self.upstream.url, "--keep-secrets", "--rotate-size", "0")
        self.relay.addresses()
        self.footprint = self.relay.footprint_at_rest()
        self.played = 0

    def _serve(self, peer: Peer) -> None:
        self.server = Act(lambda: peer, *self.plan)
        self.done.set()

    def play(self, client: tuple[list[bytes], str], server: tuple[list[bytes], str]) -> tuple[Act, Act]:
        self.plan, self.server = server, None
        self.done.clear()
        acted = Act(self.relay.connect, *client)
        assert self.done.wait(60)
        self.played += 1
        assert self.server is not None
        return acted, self.server


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    one = Stage(tmp_path_factory.mktemp("relay"))
    with one.upstream, one.relay:
        yield one
        assert wait_for(lambda: one.relay.footprint() == one.footprint)
        assert one.relay.stop() == 0
    assert one.relay.err == b""
    channels = closes(one.relay.capture())
    assert len(channels) == 2 * one.played


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(client=ACTS, server=ACTS)
def test_law_each_gets_what_the_other_sent_or_learns_that_it_did_not(
    stage: Stage, client: tuple[list[bytes], str], server: tuple[list[bytes], str]
) -> None:
    at_client, at_server = stage.play(client, server)
    assert "waited in vain" not in {at_client.outcome, at_server.outcome}
    assert at_client.sent.startswith(at_server.came) or b"".join(client[0]).startswith(at_server.came)
    assert b"".join(server[0]).startswith(at_client.came)
    if (client[1], server[1]) == (HALF_CLOSE, HALF_CLOSE):
        assert (at_client.outcome, at_server.outcome) == (HALF_CLOSE, HALF_CLOSE)
        assert at_server.came == at_client.sent == b"".join(client[0])
        assert at_client.came == at_server.sent == b"".join(server[0])
    if at_client.outcome == HALF_CLOSE:  # a clean end is told only if there was one
        assert at_client.came == b"".join(server[0])
    if at_server.outcome == HALF_CLOSE:
        assert at_server.came == b"".join(client[0])


def test_a_reset_is_never_taken_for_an_end(stage: Stage) -> None:
    for sends in ([], [b"data: x\n\n"], [b"HTTP/1.1 200 OK\r\n\r\n", LARGE]):
        at_client, _ = stage.play(([get()], HALF_CLOSE), (sends, RESET))
        assert at_client.outcome == "was reset"
