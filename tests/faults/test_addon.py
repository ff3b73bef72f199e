"""addons/faults.py: the same faults as `--fault`, as an addon."""

import json
from pathlib import Path

from mcpsniff.proxy.faults.recorded import faults_of
from tests.addons.stock import Mitmdump
from tests.cli.running import run
from tests.proxy.relayed import Peer, Upstream, answer, post
from tests.relay.wires import wire

ADDON = Path(__file__).resolve().parents[2] / "addons" / "faults.py"
CALL = b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"%s"}}'
ANSWER = b'{"jsonrpc":"2.0","id":%d,"result":{"content":[]}}'


def test_the_addon_does_faults_and_tells_of_them(tmp_path: Path) -> None:
    settings = ("faults=wrong-id,if=tool:a", "faults=latency=2ms,if=tool:b", "faults=drop,if=tool:none")
    words = [word for setting in settings for word in ("--set", setting)]
    with wire("stdio", tmp_path, "--addon", str(ADDON), *words, "--set", "faults_seed=7") as between:
        for number, tool in enumerate((b"a", b"b", b"c")):
            between.client.send(CALL % (number, tool))
            between.server.take()
            between.server.send(ANSWER % number)
        assert [between.client.take() for _ in range(3)] == [
            ANSWER.replace(b"%d", b'"0"'), ANSWER % 1, ANSWER % 2,
        ]  # fmt: skip
        between.finish()
    assert "faults: faults=" not in between.said
    assert "wrong-id,if=tool:a once; latency=2ms,if=tool:b once (--fault-seed 7 repeats them)" in between.said
    assert "the fault drop,if=tool:none struck no message: none matches" in between.said
    (capture,) = tmp_path.rglob("*.mcpcap")
    assert {place: [one.text for one in found] for place, found in faults_of(str(capture)).items()} == {
        "server's answer to tools/call id 0": ["wrong-id=type"],
        "server's answer to tools/call id 1": ["latency=2ms"],
    }
    assert "--fault-seed 7" in capture.read_text(encoding="utf-8")


def test_a_fault_that_cannot_be_read_is_refused_at_the_start(tmp_path: Path) -> None:
    words = ("--addon", str(ADDON), "--set", "faults=drpo", "--", "true")
    ran = run("stdio", "--dir", str(tmp_path), *words)
    assert ran.status == 2
    assert "did you mean drop" in ran.err


def test_the_addon_does_faults_in_stock_mitmproxy(tmp_path: Path) -> None:
    def serve(peer: Peer) -> None:
        while True:
            _, body = peer.next_message()
            peer.send(answer(ANSWER % json.loads(body)["id"], "Content-Type: application/json"))

    settings = ("faults=wrong-id,if=tool:a", "faults=status=429:30,if=tool:b", "faults_seed=7")
    words = [word for setting in settings for word in ("--set", setting)]
    with Upstream(serve) as upstream, Mitmdump(tmp_path, upstream.url, "-s", str(ADDON), *words) as stock:
        said = []
        for number, tool in enumerate((b"a", b"b", b"c")):
            with stock.connect() as peer:
                peer.send(post(CALL % (number, tool), "Content-Type: application/json", "Mcp-Session-Id: s1"))
                said.append(peer.next_message())
        assert stock.stop() == 0
    assert [head.status for head, _ in said] == [200, 429, 200]
    assert [said[0][1], said[2][1]] == [ANSWER.replace(b"%d", b'"0"'), ANSWER % 2]
    assert said[1][0].get("retry-after") == "30"
    assert "faults: wrong-id,if=tool:a once; status=429:30,if=tool:b once (--fault-seed 7 repeats them)" in stock.log
    (capture,) = stock.folder.glob("*.mcpcap")
    assert sorted(one.text for found in faults_of(str(capture)).values() for one in found) == [
        "status=429:30", "wrong-id=type",
    ]  # fmt: skip
