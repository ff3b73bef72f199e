"""A stream that stalls on purpose: what the server says on is noted, and does not leave."""

from pathlib import Path

from mcpsniff.capture.reader import open_capture
from mcpsniff.decoder import Decoder
from mcpsniff.protocol.exchange import Exchange
from tests.edited import left_of
from tests.proxy.relayed import EVENTS, Peer, Relay, Upstream, post
from tests.proxy.wrapped import wait_for

CALL = b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo"}}'
ANSWER = b'data: {"jsonrpc":"2.0","id":%d,"result":{"content":[]}}\n\n'


def test_what_comes_after_is_noted_and_blamed_on_the_fault(tmp_path: Path) -> None:
    def play(peer: Peer) -> None:
        peer.next_message()
        peer.send(EVENTS + b"\r\n", ANSWER % 1)
        wait_for(lambda: False, 0.3)
        peer.send(ANSWER % 2)
        peer.read()

    with Upstream(play) as upstream, Relay(tmp_path, upstream.url, "--fault", "stall") as relay:
        with relay.connect() as client:
            client.send(post(b"[%s,%s]" % (CALL % 1, CALL % 2), "Content-Type: application/json"))
            assert client.read_until(b"\r\n\r\n").endswith(b"\r\n\r\n")
            relay.recorded(lambda capture: b'"id":2' in capture.data(1) and len(capture.bodies("rewrite", 1)) == 2)
        assert relay.stop() == 0
        source = open_capture(str(relay.capture().path))
        records = list(source.records())
    assert b"data:" not in left_of(records)[1]
    decoder = Decoder(source.header)
    events = [event for record in records for event in decoder.feed(record)] + decoder.finish()
    ended = [event for event in events if isinstance(event, Exchange)]
    assert [one.undelivered is not None and "fault stall" in one.undelivered.why for one in ended] == [True, True]
