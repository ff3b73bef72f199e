"""`mcpsniff replay CAPTURE --serve stdio` as a process: what comes of its streams, and how it ends."""

import fcntl
import json
import os
import select
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import pytest

from mcpsniff.capture.records import Record
from tests.capture.capture_files import save
from tests.captures.samples import FOLDER
from tests.cli.ready import ready
from tests.cli.running import PATIENCE, Ran, environment, run
from tests.dialogue import play
from tests.replay.staging import answer, call, note, request

OPEN = "@open 2025-11-25\n"
INITIALIZE = request("i", "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "other"})
"""A client that is not the recorded one."""


def lines(*said: Any) -> bytes:
    return b"".join((one if isinstance(one, bytes) else json.dumps(one).encode()) + b"\n" for one in said)


@pytest.fixture
def capture(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    return written(tmp_path, request.param)


def written(folder: Path, dialogue: str, name: str = "it") -> Path:
    """A capture of what a dialogue says."""
    transport = "http" if dialogue.startswith("@http") else "stdio"
    return save(folder, f"{name}.mcpcap", play(dialogue.strip()).records, transport=transport)


def serve(capture: Path, *options: str, stdin: bytes = b"") -> Ran:
    return run("replay", str(capture), "--serve", "stdio", *options, stdin=stdin)


def said(ran: Ran) -> list[Any]:
    return [json.loads(line) for line in ran.out.splitlines()]


def test_a_sample_is_served_with_a_report(tmp_path: Path) -> None:
    """B123, B125: what was never asked, what was missed; stdout is the protocol's."""
    asked = call("x", "get_weather", city="Rom")
    path = tmp_path / "report.json"
    ran = serve(FOLDER / "weather.mcpcap", "--report", str(path), stdin=lines(INITIALIZE, note("initialized"), asked))
    assert ran.status == 0
    opened, missed = said(ran)
    assert (opened["id"], opened["result"]["serverInfo"]["name"]) == ("i", "weather")
    assert (missed["id"], missed["error"]["code"]) == ("x", -32602)
    first, second, third, fourth, *_ = ran.err.splitlines()
    assert first == "天气服务器 1.4.0 已启动，数据来源：演示数据"
    assert second == "mcpsniff: served 1 request: 1 of the 7 recorded, 1 request that is not in the capture"
    assert third.startswith("mcpsniff:   missed: tools/call get_weather is not in the capture; the nearest recorded")
    assert third.endswith('request, #15, differs in params.arguments.city (now "Rom", recorded "北京")')
    assert fourth.startswith("mcpsniff:   --ignore params.arguments.city, or --match method, takes it for the recorded")
    assert "mcpsniff:   never asked: #31 resources/read weather://forecast/beijing" in ran.err
    report = json.loads(path.read_text(encoding="utf-8"))
    assert (report["recorded"], report["played"], report["served"], report["missed"]) == (7, 1, 1, 1)
    assert report["misses"][0]["nearest"]["n"] == 15
    assert [one["n"] for one in report["never_asked"]] == [10, 15, 26, 31, 36, 43]
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(("asked", "status"), [([INITIALIZE], 0), ([INITIALIZE, request(1, "x/y")], 1)], ids=str)
def test_strict_makes_misses_a_failure(asked: list[Any], status: int) -> None:
    assert serve(FOLDER / "weather.mcpcap", "--strict", stdin=lines(*asked)).status == status


def test_noise_and_broken_lines_are_part_of_what_a_server_said() -> None:
    ran = serve(FOLDER / "noise.mcpcap", stdin=lines(INITIALIZE, call(7, "search", query="bread")))
    first, blank, _, debug, bar, *_ = ran.out.split("\n")
    assert (first, blank) == ("Starting notes server v2.3 (press Ctrl-C to stop)", "")
    assert debug == "DEBUG: searching 3 folders for 'bread'"
    assert bar.startswith("Indexing:   0%|          | 0/3\rIndexing:")
    assert ran.out.endswith("Bye!\n")


ENDINGS = OPEN + f"C> {json.dumps(call(1))}\nS| b'{json.dumps(answer(1))}\\r\\n'\nS| b'half a line'\nE> why\n"


@pytest.mark.parametrize(
    ("capture", "status"),
    [(f"{ENDINGS}S> EXIT 3\n", 3), (f"{ENDINGS}S> KILLED 9\n", -9), (f"{ENDINGS}C> EOF\nS> EXIT 3\n", 0)],
    indirect=["capture"],
)
def test_it_ends_as_the_recorded_server_did(capture: Path, status: int) -> None:
    with Live(capture) as live:
        live.send(call(8))
        assert live.line() == json.dumps(answer(8)).encode() + b"\r\n", "the line end is as recorded"
        if status == 0:
            live.close()
        ran = live.end()
    assert ran.status == status
    assert ran.out == "half a line"
    assert ran.err.splitlines()[:2] == ["why", "mcpsniff: served 1 request: 1 of the 2 recorded, nothing missed"]


ODD_BATCHES = (
    "@open 2025-06-18\n"
    f"C> {json.dumps(call(1, 'one'))}\n"
    """S> [ {"jsonrpc":"2.0","id":1,"result":{"x":1.0}} ,{"jsonrpc":"2.0","method":"notifications/x"}, 7 ]\n"""
    f"C> {json.dumps(call(2, 'two'))}\nC> {json.dumps(call(3, 'three'))}\n"
    """S> [{"jsonrpc":"2.0","id":3,"result":{}} , {"jsonrpc":"2.0","id":2,"result":{}}]\n"""
    "C> []\nS> []\n"
)


@pytest.mark.parametrize(
    ("end", "status"), [("KILLED 19", 147), ("KILLED 23", 151), ("KILLED 0", 1), ("EXIT 256", 1), ("KILLED 4711", 1)]
)
def test_an_end_that_is_none_ends_it_all_the_same(tmp_path: Path, end: str, status: int) -> None:
    """A signal that only stops a process would leave it there for ever (19 and 23 on Linux: STOP and URG)."""
    if sys.platform == "darwin":
        end = end.replace("19", "17").replace("23", "16")
        status = {147: 145, 151: 144}.get(status, status)
    capture = written(tmp_path, f"{ENDINGS}S> {end}\n")
    with Live(capture) as live:
        live.send(call(8))
        assert live.end().status == status


def test_a_report_takes_the_place_of_no_capture(tmp_path: Path) -> None:
    capture = written(tmp_path, OPEN)
    before = capture.read_bytes()
    link, hard = tmp_path / "link.json", tmp_path / "hard.json"
    link.symlink_to(capture)
    os.link(capture, hard)
    for name in (str(capture), str(link), str(hard), f"{tmp_path}/./it.mcpcap"):
        ran = serve(capture, "--report", name)
        assert ran.status == 2
        assert "--report would" in ran.err
        sent = run("replay", str(capture), "--report", name, "--to", "--", "true")
        assert sent.status == 2
        assert "--report would" in sent.err
    assert capture.read_bytes() == before


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no full device here")
def test_a_client_that_cannot_be_written_to_is_told_of() -> None:
    with open("/dev/full", "wb") as full, Live(FOLDER / "weather.mcpcap", stdout=full.fileno()) as live:
        live.send(INITIALIZE)
        ran = live.end()
    assert ran.status == 3
    assert "mcpsniff: cannot write to the client: No space left on device" in ran.err


@pytest.mark.parametrize("capture", [ODD_BATCHES], indirect=True)
def test_a_batch_of_the_server_comes_as_it_was_whoever_asked(capture: Path) -> None:
    with Live(capture) as live:
        live.send(call("é", "one"))
        whole = (
            '[ {"jsonrpc":"2.0","id":"\\u00e9","result":{"x":1.0}} ,{"jsonrpc":"2.0","method":"notifications/x"}, 7 ]'
        )
        assert live.line() == whole.encode() + b"\n"
        live.send(call(8, "two"), call(9, "three"))
        answers = b'[{"jsonrpc":"2.0","id":9,"result":{}} , {"jsonrpc":"2.0","id":8,"result":{}}]\n'
        assert live.line() == answers
        live.send(call(10, "three"))
        assert live.line() == b'[{"jsonrpc":"2.0","id":10,"result":{}}]\n'
        live.send([])
        assert live.line() == b"[]\n"
        live.close()
        assert live.end().status == 0


PIECES = (
    f"{OPEN}C> {json.dumps(call(1))}\n"
    'S| b\'{"jsonrpc":"2.0","id":1,"result":{"x":"caf\\xc3\'\n+ 3s\nS| b\'\\xa9"}}\\n\'\n'
)


@pytest.mark.parametrize("capture", [PIECES], indirect=True)
def test_lines_come_in_the_recorded_pieces_if_they_are_wanted(capture: Path) -> None:
    with Live(capture, "--raw", "--timing", "x10") as live:
        live.send(call(8), call(9))
        assert live.read() == b'{"jsonrpc":"2.0","id":8,"result":{"x":"caf\xc3'
        assert live.read().startswith(b'\xa9"}}\n')


BATCHES = (
    "@open 2025-03-26\n"
    f"C> [{json.dumps(call(1, 'a'))},{json.dumps(call(2, 'b'))},{json.dumps(note('x'))}]\n"
    f"S> [{json.dumps(answer(2, b=1))},{json.dumps(answer(1, a=1))}]\n"
)


@pytest.mark.parametrize("capture", [BATCHES], indirect=True)
def test_a_batch_is_answered_by_a_batch(capture: Path) -> None:
    batch = [call(11, "b"), call(12, "a"), call(13, "c"), 5]
    came = said(serve(capture, stdin=lines(batch, [note("y")], call(14, "a"), [])))
    (whole,) = (one for one in came if isinstance(one, list))
    alone, empty = (one for one in came if isinstance(one, dict))
    assert whole[:2] == [answer(11, b=1), answer(12, a=1)]
    assert [(one["id"], one["error"]["code"]) for one in whole[2:]] == [(13, -32602), (None, -32600)]
    assert alone == answer(14, a=1)
    assert (empty["id"], empty["error"]["code"]) == (None, -32600)


APART = "@open 2025-06-18\n" + "".join(
    f"C> {json.dumps(call(n, name))}\nS> {json.dumps(answer(n, **{name: 1}))}\n" for n, name in ((1, "a"), (2, "b"))
)


@pytest.mark.parametrize("capture", [APART], indirect=True)
def test_without_batches_in_the_protocol_each_answer_is_a_message(capture: Path) -> None:
    came = said(serve(capture, stdin=lines([call(11, "b"), call(12, "a")])))
    assert came == [answer(11, b=1), answer(12, a=1)]


SEVERAL_LINES = """\
@http
@open 2025-11-25
C> POST /mcp {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}
S> 200 STREAM
S> COMMENT keep-alive
S> EVENT id=1 {"jsonrpc":"2.0",⏎"id":1,⏎"result":{"a": "b"}}
S> END
"""


def test_what_was_said_over_http_is_served_on_pipes(tmp_path: Path) -> None:
    """B125: also a message of several lines, which must be one line here."""
    capture = written(tmp_path, SEVERAL_LINES)
    opened, found = said(serve(capture, stdin=lines(INITIALIZE, {**call(5), "params": {"name": "t"}})))
    assert opened["id"] == "i"
    assert found == {"jsonrpc": "2.0", "id": 5, "result": {"a": "b"}}


LARGE = 20_000_000


def test_large_messages_pass_while_the_client_writes_before_it_reads(tmp_path: Path) -> None:
    """Both pipes are full at the same time: whoever only writes must not hang."""
    large = json.dumps(answer(1, x="z" * LARGE))
    records = play(f"{OPEN}C> {json.dumps(call(1))}\nS> {json.dumps(answer(1))}\n").records
    said = [one._replace(body=large.encode() + b"\n") if b'"id": 1, "result"' in _data(one) else one for one in records]
    capture = save(tmp_path, "large.mcpcap", said)
    ran = serve(capture, stdin=lines(call(5), b"x" * LARGE, call(6, more=1), call(7)))
    first, no_json, miss, second = ran.out.splitlines()
    assert first == large.replace('"id": 1', '"id": 5')
    assert json.loads(no_json)["error"]["code"] == -32700
    assert json.loads(miss)["error"]["code"] == -32602
    assert second == large.replace('"id": 1', '"id": 7')


def _data(record: Record) -> bytes:
    return record.body if isinstance(record.body, bytes) else b""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_it_quietly_with_the_report(number: int) -> None:
    with Live(FOLDER / "weather.mcpcap") as live:
        live.send(INITIALIZE)
        assert b'"weather"' in live.line()
        live.signal(number)
        ran = live.end()
    assert ran.status == 0
    assert "Traceback" not in ran.err
    assert "mcpsniff: served 1 request: 1 of the 7 recorded" in ran.err


def test_a_client_that_only_writes_is_read_no_further_and_the_replay_can_be_ended() -> None:
    with Live(FOLDER / "weather.mcpcap") as live:
        written = live.flood(lines(request(1, "tools/list")) * 100)
        assert written < 50_000_000
        live.signal(signal.SIGTERM)
        ran = live.end()
    assert ran.status == 0
    assert "mcpsniff: served " in ran.err


def test_a_client_that_reads_no_more_ends_it_quietly() -> None:
    with Live(FOLDER / "weather.mcpcap") as live:
        live.send(INITIALIZE)
        live.line()
        live.stop_reading()
        live.send(request(2, "tools/list"))
        ran = live.end()
    assert ran.status == 0
    assert "Traceback" not in ran.err
    assert "mcpsniff: served 2 requests" in ran.err


def test_the_clients_last_request_is_answered_after_its_end_of_file_in_its_time() -> None:
    with Live(FOLDER / "weather.mcpcap", "--timing", "x20") as live:
        live.send(INITIALIZE, call(9, "get_weather", city="北京"))
        live.close()
        assert b'"i"' in live.line()
        assert b'"id":9' in live.line()
        assert live.end().status == 0


def test_standard_input_may_be_a_file_or_non_blocking(tmp_path: Path) -> None:
    asked = tmp_path / "asked"
    asked.write_bytes(lines(INITIALIZE)[:-1])
    with asked.open("rb") as file, Live(FOLDER / "weather.mcpcap", stdin=file.fileno()) as live:
        assert b'"weather"' in live.line(), "the last line need not have an end"
        assert live.end().status == 0
    with Live(FOLDER / "weather.mcpcap", non_blocking=True) as live:
        time.sleep(0.2)  # let it run into a pipe with nothing in it
        live.send(INITIALIZE)
        assert b'"weather"' in live.line()


HOSTILE = OPEN + f"C> {json.dumps(call(1))}\nE| b'\\x1b]0;owned\\x07\\n'\nS> {json.dumps(answer(1, x=chr(27)))}\n"


@pytest.mark.parametrize("capture", [HOSTILE], indirect=True)
def test_what_a_client_is_to_read_is_as_it_was_and_the_report_harmless(capture: Path) -> None:
    ran = serve(capture, stdin=lines(call(5), call(6, "\x1b[2J\u202e")))
    first, report, miss, *_ = ran.err.splitlines()
    assert first == "\x1b]0;owned\x07", "on a pipe the server's stderr is the client's to make sense of"
    assert "\x1b" not in report + miss
    assert "\\x1b[2J\\u202e" in miss


def test_what_cannot_be_served_is_said(tmp_path: Path) -> None:
    torn = serve(FOLDER / "torn.mcpcap", stdin=lines(INITIALIZE, call(5, "nothing")))
    assert torn.status == 0
    assert "mcpsniff: the capture is damaged in line 13" in torn.err
    assert "mcpsniff: the answer to #14 tools/call is not in the capture" in torn.err

    late = written(tmp_path, f"C> {json.dumps(call(1))}\nS> {json.dumps(answer(1))}")
    ran = serve(late, stdin=lines(INITIALIZE, call(5)))
    assert "no initialize was answered in the capture: clients get an answer that is made up" in ran.err
    assert [one["id"] for one in said(ran)] == ["i", 5]

    for path in (tmp_path / "nowhere.mcpcap", late):
        with Live(path, *([] if path is not late else ["--report", "/nowhere/x"])) as live:
            live.send(note("x"), INITIALIZE)
            assert json.loads(live.line())["error"]["message"].startswith("mcpsniff replay: ")
            assert live.end().status == 3

    quiet = written(tmp_path, "E> nothing else", "quiet")
    ran = serve(quiet)
    assert (ran.status, ran.out) == (3, "")
    assert "there is nothing to replay in" in ran.err


@pytest.mark.parametrize(
    ("options", "status", "text"),
    [
        (["--timing", "fast"], 2, "--timing wants original, none, or a speed such as x2"),
        (["--timing", "xnan"], 2, "--timing wants"),
        (["--timing", "x1_0"], 2, "--timing wants"),
        (["--timing", "x٣"], 2, "--timing wants"),
        (
            ["--timing", "x0"],
            2,
            "--timing wants original, none, or a speed such as x2 or x0.5 (from x0.001 to x1,000,000)",
        ),
        (["--yes"], 2, "--yes is for --as-recorded"),
        (["--report", ""], 2, "--report wants the name of a file"),
        (["--report", "-"], 2, "standard output belongs to the client"),
        (["--report", "new.mcpcap"], 2, "which has the name of a capture"),
        (["--ignore", "params"], 2, "--ignore wants a path below params"),
        (["--ignore", "a..b"], 2, "--ignore wants a path"),
        (["--listen", "8000"], 2, "--listen is for --serve http|sse"),
        (["--once"], 2, "--once is for --serve http|sse"),
        (["--server", "x"], 2, "no server of the capture has 'x' in its address; there is a command"),
        (["--report", "/nowhere/report.json"], 3, "cannot write /nowhere/report.json"),
    ],
    ids=str,
)
def test_wrong_options_are_told_in_one_sentence(options: list[str], status: int, text: str) -> None:
    ran = serve(FOLDER / "weather.mcpcap", *options)
    assert ran.status == status
    assert text in ran.err
    assert ran.out == ""


def test_a_redacted_capture_is_refused_unless_it_is_wanted(tmp_path: Path) -> None:
    out = tmp_path / "shared.mcpcap"
    done = run("redact", str(FOLDER / "weather.mcpcap"), "-o", str(out), "--value", "天气服务器")
    if done.status != 0:
        pytest.fail(done.err)
    ran = serve(out, stdin=lines(INITIALIZE, call(1)))
    assert ran.status == 3
    (told,) = said(ran)
    assert (told["id"], told["error"]["code"]) == ("i", -32603)
    assert "values were removed from" in told["error"]["message"]
    assert "--allow-redacted replays it all the same" in told["error"]["message"]
    first, *places = ran.err.splitlines()
    assert "--allow-redacted replays it all the same" in first
    assert places
    assert said(serve(out, "--allow-redacted", stdin=lines(INITIALIZE)))[0]["id"] == "i"


def test_what_the_recorder_masked_is_no_reason_to_refuse(tmp_path: Path) -> None:
    records = play(f"{OPEN}C> {json.dumps(call(1))}\nS> {json.dumps(answer(1))}").records
    mask = {"start": 0, "length": 1, "what": "token", "fp": "0011223344556677"}
    of_client = save(tmp_path, "c.mcpcap", [*records, Record(9000, "mask", 0, mask)])
    ran = serve(of_client, stdin=lines(call(5)))
    assert (said(ran), "mask" in ran.err) == ([answer(5)], False)
    of_server = save(tmp_path, "s.mcpcap", [*records, Record(9000, "mask", 1, mask)])
    ran = serve(of_server, stdin=lines(call(5)))
    assert said(ran) == [answer(5)]
    assert ran.err.startswith("mcpsniff: 1 value of the server's was masked when it was recorded\n")


class Live:
    """A replay that runs, on pipes."""

    def __init__(
        self,
        capture: Path,
        *options: str,
        stdin: int | None = None,
        stdout: int | None = None,
        non_blocking: bool = False,
    ) -> None:
        (their_in, self._in), (self._out, their_out), (self._err, their_err) = (os.pipe() for _ in range(3))
        if non_blocking:
            fcntl.fcntl(their_in, fcntl.F_SETFL, os.O_NONBLOCK)
            fcntl.fcntl(their_out, fcntl.F_SETFL, os.O_NONBLOCK)
        words = ["replay", str(capture), "--serve", "stdio", *options]
        streams = [
            their_in if stdin is None else stdin,
            their_out if stdout is None else stdout,
            their_err,
        ]
        self._child = ready().start(words, streams, environment(), None)
        for descriptor in (their_in, their_out, their_err):
            os.close(descriptor)
        self._rest = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._child.kill()
        for descriptor in (self._in, self._out, self._err):
            with suppress(OSError):
                os.close(descriptor)

    def send(self, *what: Any) -> None:
        os.write(self._in, lines(*what))

    def line(self) -> bytes:
        while b"\n" not in self._rest:
            block = os.read(self._out, 65536)
            assert block, self._rest
            self._rest += block
        line, _, self._rest = self._rest.partition(b"\n")
        return line + b"\n"

    def flood(self, data: bytes) -> int:
        """Write for as long as anything is taken within a second; how many bytes were."""
        os.set_blocking(self._in, False)
        written = 0
        while select.select([], [self._in], [], 1.0)[1]:
            with suppress(BlockingIOError):
                written += os.write(self._in, data)
        return written

    def read(self) -> bytes:
        return os.read(self._out, 65536)

    def close(self) -> None:
        os.close(self._in)

    def stop_reading(self) -> None:
        os.close(self._out)

    def signal(self, number: int) -> None:
        self._child.send_signal(number)

    def end(self) -> Ran:
        """Wait until it has ended of itself; what is left of its streams."""
        status = self._child.wait(PATIENCE)
        rest, err = self._rest, b""
        with suppress(OSError):
            while block := os.read(self._out, 65536):
                rest += block
        while block := os.read(self._err, 65536):
            err += block
        return Ran(status, rest.decode(errors="replace"), err.decode())
