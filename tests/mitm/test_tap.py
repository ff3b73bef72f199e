"""The tap: what passes is what came, whatever happens to the recording of it, and what is lost is admitted."""

import gzip
import re
import threading
from collections.abc import Callable

import pytest

from mcpsniff.proxy.mitm.tap import HELD, Verdict
from mcpsniff.proxy.recorder import Recorder
from tests.mitm.engines import Faulty, Tapped
from tests.proxy.relayed import EVENTS, Peer, Upstream, answer, chunk, get, post

ASK = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
SAID = b'{"jsonrpc":"2.0","id":1,"result":{}}'
EVENT = b"event: message\ndata: " + SAID + b"\n\n"


def serving(response: bytes, came: list[bytes]) -> Callable[[Peer], None]:
    """A server that gives one answer to each request, whose bodies it keeps."""

    def script(peer: Peer) -> None:
        while True:
            came.append(peer.next_message()[1])
            peer.send(response)

    return script


SHAPES = {
    "json": (answer(SAID, "Content-Type: application/json"), SAID),
    "events": (EVENTS + b"Transfer-Encoding: chunked\r\n\r\n" + chunk(EVENT) + chunk(EVENT) + chunk(b""), EVENT * 2),
    "gzip": (answer(gzip.compress(SAID), "Content-Encoding: gzip"), gzip.compress(SAID, mtime=0)),
    "large": (answer(b"x" * 500_000), b"x" * 500_000),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("fault", [1, 2, 3])
@pytest.mark.parametrize("for_good", [False, True])
def test_a_fault_costs_no_byte_and_is_admitted(
    shape: str, fault: int, for_good: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    response, wanted = SHAPES[shape]
    if shape == "gzip":
        response = answer(wanted, "Content-Encoding: gzip")
    came: list[bytes] = []
    tapped = Tapped(Faulty({fault}, for_good=for_good))
    with Upstream(serving(response, came)) as upstream, tapped.running(upstream), tapped.connect() as peer:
        peer.send(post(ASK))
        _, got = peer.next_message()
        records = tapped.records(2)
    assert came == [ASK]
    assert got == wanted
    assert len(tapped.body(0)) == len(ASK)
    assert len(tapped.body(1)) == len(wanted)
    lost = [what for _, kind, _, what in records if kind == "gap"]
    noted = tapped.recorder.count
    assert len(lost) == (noted - fault + 1 if for_good else int(noted >= fault))
    assert {each["why"] for each in lost} <= {"internal"}
    said = capfd.readouterr().err
    assert len(re.findall("internal error while recording", said)) == (1 if lost else 0)
    assert "Traceback" not in said


def test_a_fault_at_the_head_lets_the_exchange_pass_unrecorded(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    came: list[bytes] = []
    tapped = Tapped(Recorder())
    monkeypatch.setattr(tapped.tap, "next_channel", lambda: 1 // 0)
    with Upstream(serving(SHAPES["events"][0], came)) as upstream, tapped.running(upstream), tapped.connect() as peer:
        peer.send(post(ASK))
        assert peer.next_message()[1] == EVENT * 2
        records = tapped.records()
    assert came == [ASK]
    assert [(kind, channel, what) for _, kind, channel, what in records if kind != "close"][:1] == [
        ("gap", None, {"bytes": 0, "why": "internal"})
    ]
    assert "internal error while recording: ZeroDivisionError" in capfd.readouterr().err


def test_a_callback_that_raises_itself_costs_nothing_and_is_admitted(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    came: list[bytes] = []
    tapped = Tapped(Recorder())
    monkeypatch.setattr(tapped.tap, "piece", lambda *_: 1 // 0)
    with Upstream(serving(SHAPES["events"][0], came)) as upstream, tapped.running(upstream), tapped.connect() as peer:
        peer.send(post(ASK))
        assert peer.next_message()[1] == EVENT * 2
        records = tapped.records(2)
    assert came == [ASK]
    lost = {0: 0, 1: 0}
    for _, kind, channel, what in records:
        if kind == "gap" and channel is not None:
            assert what["why"] == "internal"
            lost[channel] += what["bytes"]
    assert lost == {0: len(ASK), 1: len(EVENT * 2)}
    assert capfd.readouterr().err.count("internal error while recording: ZeroDivisionError") == 1


def test_heads_are_recorded_as_they_are_spelt_and_ordered() -> None:
    response = b"HTTP/1.1 200 Fine indeed\r\nX-b: 2\r\nx-A: 1\r\nX-b: \xe9\r\nContent-Length: 2\r\n\r\nok"
    with Upstream(serving(response, [])) as upstream, Tapped(Recorder()).running(upstream) as tapped:
        with tapped.connect() as peer:
            peer.send(post(b"{}", "x-B: 3", "X-a: 4", "x-B: 5", target="/mcp;p=1?a=%7e&b=%2F#"))
            assert b"\r\nX-b: 2\r\nx-A: 1\r\nX-b: \xe9\r\n" in peer.read_until(b"ok")
            records = tapped.records(2)
        heads = [what for _, kind, _, what in records if kind == "open"]
    asked, answered = heads[0]["meta"], heads[1]["meta"]
    assert asked["start"] == "POST /mcp;p=1?a=%7e&b=%2F# HTTP/1.1"
    assert asked["headers"][-3:] == [["x-B", "3"], ["X-a", "4"], ["x-B", "5"]]
    assert answered["start"] == "HTTP/1.1 200 Fine indeed"
    assert answered["headers"] == [["X-b", "2"], ["x-A", "1"], ["X-b", "\xe9"], ["Content-Length", "2"]]
    assert (heads[0]["kind"], heads[0]["dir"], heads[0]["conn"]) == ("http-request", "c2s", 0)
    assert (heads[1]["kind"], heads[1]["dir"], heads[1]["of"]) == ("http-response", "s2c", 0)
    assert asked["authority"] == f"127.0.0.1:{upstream.port}"
    assert answered["server"] == f"127.0.0.1:{upstream.port}"


def test_an_event_passes_and_is_noted_as_it_comes() -> None:
    more = threading.Event()

    def script(peer: Peer) -> None:
        peer.next_message()
        peer.send(EVENTS + b"Transfer-Encoding: chunked\r\n\r\n" + chunk(EVENT))
        more.wait(60)
        peer.send(chunk(EVENT))
        peer.read()

    with Upstream(script) as upstream, Tapped(Recorder()).running(upstream) as tapped, tapped.connect() as peer:
        peer.send(get("/mcp"))
        peer.read_until(EVENT)
        assert [what for _, kind, channel, what in tapped.records() if kind == "chunk" and channel == 1] == [EVENT]
        more.set()
        peer.read_until(EVENT + b"\r\n" + b"%x\r\n" % len(EVENT) + EVENT)


@pytest.mark.parametrize("by_client", [True, False])
def test_who_hung_up_is_recorded_and_the_other_side_notices(by_client: bool) -> None:
    gone = threading.Event()

    def script(peer: Peer) -> None:
        peer.next_message()
        peer.send(EVENTS + b"Transfer-Encoding: chunked\r\n\r\n" + chunk(EVENT))
        if by_client:
            peer.read()
            gone.set()

    with Upstream(script) as upstream, Tapped(Recorder()).running(upstream) as tapped, tapped.connect() as peer:
        peer.send(get("/mcp"))
        peer.read_until(EVENT)
        if by_client:
            peer.socket.close()
            assert gone.wait(60)
        else:
            assert not peer.read_all().endswith(b"0\r\n\r\n")
        ends = {channel: what for _, kind, channel, what in tapped.records(2) if kind == "close"}
    assert ends[0] == {"how": "eof"}
    assert ends[1]["how"] == ("aborted" if by_client else "reset")
    assert ends[1]["error"] == ("the client closed its end" if by_client else "the server closed its end")


class Says:
    """A judge with its verdicts written down."""

    def __init__(self, *verdicts: Verdict) -> None:
        self.verdicts = list(verdicts)
        self.asked: list[tuple[str, bytes]] = []

    def begin(self, _flow: object) -> Verdict:
        return self.verdicts.pop(0)

    def more(self, _flow: object, direction: str, data: bytes) -> Verdict:
        self.asked.append((direction, data))
        return self.verdicts.pop(0) if self.verdicts else Verdict.WAIT


KEEP, DROP, WAIT = Verdict.KEEP, Verdict.DROP, Verdict.WAIT


def judged(
    judge: Says, response: bytes = SHAPES["json"][0], over: list[bool] | None = None
) -> tuple[list[tuple[int, str, int | None, object]], Tapped]:
    """What is recorded of one exchange, which passes in any case."""
    came: list[bytes] = []
    tapped = Tapped(Recorder(), judge)
    if over is not None:
        tapped.tap.over = lambda *_, is_recorded: over.append(is_recorded)  # type: ignore[method-assign,misc]
    with Upstream(serving(response, came)) as upstream, tapped.running(upstream), tapped.connect() as peer:
        peer.send(post(ASK))
        peer.next_message()
        assert came == [ASK]
        deadline = threading.Event()
        for _ in range(100):
            if tapped.tap.kept + tapped.tap.dropped and not tapped.tap.is_waiting:
                break
            deadline.wait(0.02)
        deadline.wait(0.1)
        return tapped.records(), tapped


@pytest.mark.parametrize(
    "verdicts", [[KEEP], [WAIT, KEEP], [WAIT, WAIT, KEEP], [WAIT, WAIT, WAIT, KEEP], [WAIT] * 5 + [KEEP]]
)
def test_what_is_kept_late_is_recorded_as_if_it_had_been_at_once(verdicts: list[Verdict]) -> None:
    records, tapped = judged(Says(*verdicts))
    kinds = [(kind, channel) for _, kind, channel, _ in records]
    assert sorted(kinds) == sorted([("open", 0), ("chunk", 0), ("close", 0), ("open", 1), ("chunk", 1), ("close", 1)])
    assert (tapped.body(0), tapped.body(1)) == (ASK, SAID)
    assert [t for t, *_ in records] == sorted([t for t, *_ in records])
    assert (tapped.tap.kept, tapped.tap.dropped) == (1, 0)


@pytest.mark.parametrize("verdicts", [[DROP], [WAIT, DROP], [WAIT, WAIT, WAIT, WAIT, DROP], [WAIT] * 9])
def test_nothing_is_written_down_of_what_is_dropped(verdicts: list[Verdict]) -> None:
    over: list[bool] = []
    records, tapped = judged(Says(*verdicts), over=over)
    assert records == []
    assert (tapped.tap.kept, tapped.tap.dropped) == (0, 1)
    assert over == [False], "it is forgotten, too"


def test_a_judge_that_fails_drops(capfd: pytest.CaptureFixture[str]) -> None:
    records, tapped = judged(Says())
    assert records == []
    assert tapped.tap.dropped == 1
    assert "internal error while recording: IndexError" in capfd.readouterr().err


def test_no_more_is_held_than_the_limit() -> None:
    judge = Says(*[WAIT] * 1000)
    records, tapped = judged(judge, answer(b"x" * 20 * HELD))
    assert records == []
    assert tapped.tap.dropped == 1
    assert sum([len(data) for _, data in judge.asked]) < 2 * HELD + 65_536


def test_an_upgrade_to_http2_is_not_offered_to_the_server() -> None:
    heads: list[dict[str, str]] = []

    def script(peer: Peer) -> None:
        head, _ = peer.next_message()
        heads.append(dict(head.headers))
        peer.send(answer(b"ok"))

    asked = post(b"{}", "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk", "X-a: 1")
    with Upstream(script) as upstream, Tapped(Recorder()).running(upstream) as tapped, tapped.connect() as peer:
        peer.send(asked)
        assert peer.next_message()[1] == b"ok"
        (opened, *_) = tapped.records(2)
    assert heads[0].keys() == {"Host", "Content-Length", "X-a"}
    assert ["Upgrade", "h2c"] in opened[3]["meta"]["headers"]
