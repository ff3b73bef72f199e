"""`mcpsniff import` from the command line, on both kinds of files."""

import json
import os
import re
import shlex
import stat
from pathlib import Path

import pytest
from mitmproxy.addons.savehar import SaveHar
from mitmproxy.io import tnetstring
from mitmproxy.version import VERSION

from mcpsniff.capture.reader import open_capture
from mcpsniff.cli.main import run
from mcpsniff.proxy.recording import write_transcript
from tests.importers.talk import SECRET, SESSION, broken_by, decoded, flow, flow_file, page, said, session


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MCPSNIFF_DIR", str(tmp_path / "captures"))
    monkeypatch.setattr("mcpsniff.cli.import_.write_transcript", lambda _path: None)
    return tmp_path


def as_file(folder: Path, kind: str, flows: list) -> str:
    path = folder / f"seen.{kind}"
    path.write_bytes(flow_file(flows) if kind == "flows" else json.dumps(SaveHar().make_har(flows)).encode())
    return str(path)


def imported(folder: Path) -> str:
    found = list((folder / "captures").glob("*.mcpcap"))
    assert len(found) == 1
    return str(found[0])


@pytest.mark.parametrize("kind", ["flows", "har"])
def test_a_session_is_there_as_it_was_said(folder: Path, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["import", as_file(folder, kind, [*session(), page()])]) == 0
    out = capsys.readouterr().out
    path = imported(folder)
    assert out.startswith("5 HTTP exchanges of 6 from ")
    assert path in out
    messages, exchanges, findings = decoded(path)
    assert [(one.direction, one.kind, one.method) for one in messages] == [
        ("c2s", "request", "initialize"),
        ("s2c", "response", None),
        ("c2s", "notification", "notifications/initialized"),
        ("s2c", "request", "ping"),
        ("c2s", "response", None),
        ("c2s", "request", "tools/list"),
        ("s2c", "response", None),
    ]
    assert {(one.method, one.state) for one in exchanges} == {
        ("initialize", "answered"),
        ("ping", "answered"),
        ("tools/list", "answered"),
    }
    assert findings == []
    assert [one.latency_us for one in exchanges if one.method == "tools/list"] == [190_000]


@pytest.mark.parametrize("kind", ["flows", "har"])
def test_times_name_label_and_mode_are_those_of_the_session(folder: Path, kind: str) -> None:
    run(["import", as_file(folder, kind, session())])
    path = imported(folder)
    header = open_capture(path).header
    assert header.started == "2026-09-21T14:13:20.000000Z"
    assert (header.transport, header.label) == ("forward", "seen")
    assert os.path.basename(path).startswith("seen-20260921T141320.000Z-")
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    records = list(open_capture(path).records())
    asked = next(one for one in records if one.kind == "open")
    assert asked.body["meta"]["start"] == "POST /mcp HTTP/1.1"
    assert (asked.body["meta"]["scheme"], asked.body["meta"]["authority"]) == ("https", "mcp.example")
    assert [one.t for one in records if one.kind == "open" and one.body["dir"] == "c2s"] == [
        0, 1_000_000, 2_000_000, 3_000_000, 4_000_000,
    ]  # fmt: skip


def test_at_the_end_there_is_a_transcript_that_says_where_it_is_from_and_a_word_on_how_to_look_at_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("mcpsniff.cli.import_.write_transcript", write_transcript)
    source = as_file(folder, "har", session())
    assert run(["import", source]) == 0
    path = imported(folder)
    target = path.removesuffix(".mcpcap") + ".md"
    said_of_it = capsys.readouterr().err
    assert f"transcript in {target}\n" in said_of_it
    assert said_of_it.endswith("to look at it: mcpsniff show seen\n")
    text = Path(target).read_text(encoding="utf-8")
    assert f"- **imported:** `{source}`\n- **kept by:** `mitmproxy {VERSION}`\n" in text
    assert "- **transport:** `http`" in text


def test_without_a_transcript_there_is_none_and_elsewhere_it_is_named_by_its_path(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("mcpsniff.cli.import_.write_transcript", write_transcript)
    source, target = as_file(folder, "flows", session()), folder / "it's.mcpcap"
    assert run(["import", source, "--no-transcript", "-o", str(target)]) == 0
    assert capsys.readouterr().err.endswith(f"to look at it: mcpsniff show {shlex.quote(str(target))}\n")
    assert not list(folder.rglob("*.md"))
    assert open_capture(str(target)).header.kept_by == "mitmproxy"


def test_a_later_capture_with_the_same_label_does_not_stand_in_the_way(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    later, earlier = as_file(folder, "har", [*session()][1:]), as_file(folder, "flows", session())
    assert run(["import", later, "--label", "x"]) == 0
    assert capsys.readouterr().err.endswith("mcpsniff show x\n")
    assert run(["import", earlier, "--label", "x"]) == 0
    assert re.search(r"mcpsniff show /.*/captures/x-20260921T141320.000Z-\d+\.mcpcap\n$", capsys.readouterr().err)


@pytest.mark.parametrize("kind", ["flows", "har"])
def test_secrets_are_masked_unless_they_are_asked_for(folder: Path, kind: str) -> None:
    source = as_file(folder, kind, session())
    run(["import", source, "-o", str(folder / "masked.mcpcap")])
    run(["import", source, "--keep-secrets", "-o", str(folder / "whole.mcpcap")])
    assert SECRET not in (folder / "masked.mcpcap").read_text()
    assert SECRET in (folder / "whole.mcpcap").read_text()
    assert SESSION in (folder / "masked.mcpcap").read_text()


@pytest.mark.parametrize("kind", ["flows", "har"])
def test_a_file_without_mcp_makes_no_capture_unless_all_is_wanted(
    folder: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    other = flow(1, said(id=1, method="eth_blockNumber"), said(id=1, result="0x1"), url="https://chain.example/")
    source = as_file(folder, kind, [page(), other])
    assert run(["import", source]) == 1
    assert "has 2 HTTP exchanges, none of them MCP (--all takes them all)" in capsys.readouterr().err
    assert not (folder / "captures").exists()
    assert run(["import", source, "--all"]) == 0
    assert "/index.html" in Path(imported(folder)).read_text()


@pytest.mark.parametrize("kind", ["flows", "har"])
def test_a_body_that_was_streamed_is_admitted_and_nobody_is_blamed(
    folder: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    flows = session()
    assert flows[3].response is not None
    flows[3].response.data.content = None
    assert run(["import", as_file(folder, kind, flows)]) == 0
    assert "does not have 1 body of these messages" in capsys.readouterr().err
    _, _, findings = decoded(imported(folder))
    assert [one.code for one in findings] == ["MCP902"]
    where = re.fullmatch(
        r"not in the capture: (the event stream of POST /mcp for #\d+ tools/list); the imported file does not have it",
        findings[0].text,
    )
    assert where is not None
    assert "--set store_streamed_bodies=true" in findings[0].fix
    assert run(["show", imported(folder)]) == 0
    shown = capsys.readouterr().out
    assert "1 request whose answers this capture may lack" not in shown
    assert "1 request whose answer this capture may lack" in shown
    assert f"{where[1]} is missing" in " ".join(shown.split())
    for words in ("without an answer", "no answer in", "abandoned", "before its answer", "channel", ": source"):
        assert words not in shown, words


def test_a_stream_that_mitmproxy_wrote_as_latin_1_is_put_right_and_that_is_said(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "done ☃ 你好"
    body = f"data: {json.dumps({'jsonrpc': '2.0', 'id': 2, 'result': {'x': text}}, ensure_ascii=False)}\n\n".encode()
    flows = [*session(), flow(5, said(id=2, method="tools/call"), body, kind="text/event-stream")]
    assert run(["import", as_file(folder, "har", flows)]) == 0
    told = "the file has 1 body in UTF-8 as if it were Latin-1 or windows-1252"
    assert capsys.readouterr().err.count(told) == 1
    assert text in Path(imported(folder)).read_text(encoding="utf-8")
    comments = [one.body["text"] for one in open_capture(imported(folder)).records() if one.kind == "comment"]
    assert [one.startswith(told) for one in comments].count(True) == 1


def test_a_response_that_broke_off_says_who_did_it(folder: Path) -> None:
    flows = session()
    flows[3] = broken_by(flows[3], "server disconnected")
    run(["import", as_file(folder, "flows", flows)])
    closes = [one.body for one in open_capture(imported(folder)).records() if one.kind == "close"]
    assert {"how": "reset", "error": "server disconnected"} in closes


def test_flows_before_the_place_where_a_file_breaks_are_imported(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flows = session()
    whole, third = flow_file(flows), len(flow_file(flows[:2]))
    path = folder / "cut.flows"
    path.write_bytes(whole[: third + 20])
    assert run(["import", str(path)]) == 3
    said_of_it = capsys.readouterr()
    assert f"flow 3 at byte {third:,} cannot be read: the file ends in the middle of it" in said_of_it.err
    assert said_of_it.out.startswith("2 HTTP exchanges from")
    assert len(decoded(imported(folder))[0]) == 3


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "it is empty"),
        (b"\x89PNG\r\n\x1a\n", "it looks like a PNG picture"),
        (b'{"log": {"entries": [\n{"request"', "line 2, column 11: not JSON"),
        (b'{"log": {"entries": 3}}', 'no list "entries" in "log"'),
        (b'{"log": "\xff"}', "byte 9: it is not UTF-8"),
        (b'{"a":' * 100_000, "nested too deep"),
        (b"999999999999:", "flow 1 at byte 0 cannot be read"),
        (b"3:abc,", "flow 1 at byte 0 cannot be read: it is no flow of mitmproxy"),
        (b"12abc", "flow 1 at byte 0 cannot be read: it is no flow of mitmproxy"),
        (b"5:1:a,}" * 3, "flow 1 at byte 0 cannot be read"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_place(
    folder: Path, data: bytes, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = folder / "seen.bin"
    path.write_bytes(data)
    assert run(["import", str(path)]) == 3
    shown = capsys.readouterr().err
    assert words in shown
    assert "seen.bin" in shown
    assert shown.count("\n") == 1
    assert not (folder / "captures").exists()


def test_a_missing_file_and_a_capture_are_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["import", str(folder / "none.har")]) == 3
    assert "No such file or directory" in capsys.readouterr().err
    run(["import", as_file(folder, "flows", session()), "-o", str(folder / "c.mcpcap")])
    assert run(["import", str(folder / "c.mcpcap")]) == 3
    assert "is a capture of mcpsniff already" in capsys.readouterr().err


def test_no_cut_of_a_flow_file_and_no_odd_byte_in_it_is_a_bug(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = flow_file(session()[:1])
    path = folder / "odd.flows"
    for at in range(1, len(whole), 97):
        for data in (whole[:at], whole[:at] + b"\xff" + whole[at + 1 :]):
            path.write_bytes(data)
            assert run(["import", str(path), "-o", str(folder / "odd.mcpcap")]) in (0, 1, 3)
    assert "bug" not in capsys.readouterr().err


def test_show_says_what_to_do_with_such_files(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for kind in ("flows", "har"):
        assert run(["show", as_file(folder, kind, session())]) == 3
        assert f"mcpsniff import {folder}/seen.{kind} makes a capture of it" in capsys.readouterr().err


@pytest.mark.parametrize("moment", [float("inf"), float("nan")])
def test_a_flow_with_an_impossible_time_is_named_and_the_others_are_imported(
    folder: Path, moment: float, capsys: pytest.CaptureFixture[str]
) -> None:
    flows = session()
    second = len(flow_file(flows[:1]))
    flows[1].request.timestamp_start = moment
    assert run(["import", as_file(folder, "flows", flows)]) == 3
    said_of_it = capsys.readouterr()
    assert f"flow 2 at byte {second:,} cannot be read: it is no flow of mitmproxy (cannot convert" in said_of_it.err
    assert said_of_it.out.startswith(f"{len(flows) - 1} HTTP exchanges from")


@pytest.mark.parametrize("member", ["url", "method"])
def test_what_is_said_of_a_file_does_nothing_to_a_terminal(
    folder: Path, member: str, capsys: pytest.CaptureFixture[str]
) -> None:
    har = json.loads(Path(as_file(folder, "har", session())).read_bytes())
    for entry in har["log"]["entries"]:
        entry["_eventSourceMessages"] = [{"time": 1, "data": "{}"}]
        entry["response"].get("content", {}).pop("text", None)
        entry["request"][member] += "\x1b[2J"
    (folder / "odd.har").write_text(json.dumps(har))
    run(["import", str(folder / "odd.har"), "--all"])
    said_of_it = capsys.readouterr()
    assert "put together from the list" in said_of_it.err
    assert "\x1b" not in said_of_it.err + said_of_it.out


def test_flows_that_cannot_be_read_are_passed_over_and_older_ones_are_read(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    states = [one.get_state() for one in session()]
    states[0]["version"] = 19
    states[1]["version"] = 99
    states[3] = {"version": 21, "type": "http", "request": {}}
    whole = [tnetstring.dumps(state) for state in states]
    path = folder / "mixed.flows"
    path.write_bytes(b"".join(whole))
    assert run(["import", str(path)]) == 3
    said_of_it = capsys.readouterr()
    second, fourth = len(whole[0]), sum(map(len, whole[:3]))
    assert f"flow 2 at byte {second:,} cannot be read: it is no flow of mitmproxy (" in said_of_it.err
    assert "flow format version 99" in said_of_it.err
    assert f"flow 4 at byte {fourth:,} cannot be read: it is no flow of mitmproxy (" in said_of_it.err
    assert said_of_it.out.startswith("3 HTTP exchanges from")
    assert decoded(imported(folder))[0][0].method == "initialize"


def test_what_is_no_http_is_counted(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tunnel = flow(0, b"", None, method="CONNECT")
    assert run(["import", as_file(folder, "flows", [tunnel, *session()])]) == 0
    assert "1 entry left out: tunnels, WebSocket" in capsys.readouterr().err


def test_a_har_file_of_powershell_and_its_times_of_any_age_are_read(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    har = json.loads(Path(as_file(folder, "har", session())).read_bytes())
    path = folder / "wide.har"
    path.write_text(json.dumps(har), encoding="utf-16")
    assert run(["import", str(path)]) == 0
    for year, is_read in (
        ("0001", False),
        ("1969", False),
        ("1970", True),
        ("2068", True),
        ("2070", False),
        ("9999", False),
    ):
        har["log"]["entries"][0]["startedDateTime"] = f"{year}-01-01T00:00:00.000Z"
        path.write_text(json.dumps(har))
        output = folder / f"{year}.mcpcap"
        assert run(["import", str(path), "-o", str(output)]) == (0 if is_read else 3)
        assert ('entry 1 cannot be read: "startedDateTime" is no time' in capsys.readouterr().err) == (not is_read)
        assert len(decoded(str(output))[0]) == (7 if is_read else 5)


def test_no_url_and_no_error_tells_a_secret(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    events = [{"time": 1_800_000_000, "eventName": "message", "data": '{"jsonrpc":"2.0","id":1,"result":{}}'}]
    head = {"startedDateTime": "2026-01-01T00:00:00Z", "time": 1}
    response = {"status": 200, "headers": [{"name": "Content-Type", "value": "text/event-stream"}], "content": {}}
    post = {"mimeType": "application/json", "text": '{"jsonrpc":"2.0","id":1,"method":"ping"}'}
    ask = {"method": "POST", "url": "https://usr:S3CRET@h/mcp#access_token=S3CRET", "postData": post}
    told = "net::ERR https://h/cb?code=S3CRET Authorization: Bearer S3CRET"
    entries = [
        {**head, "request": ask, "response": response, "_eventSourceMessages": events},
        {**head, "request": ask, "response": response, "_error": told},
        {**head, "request": {**ask, "url": "https://usr:S3CRET/@h/mcp"}, "response": response},
    ]
    path = folder / "a.har"
    path.write_text(json.dumps({"log": {"version": "1.2", "entries": entries}}))
    assert run(["import", str(path)]) == 3
    said = capsys.readouterr()
    assert "the event stream of POST https://h/mcp is put together" in said.err
    assert "entry 3 cannot be read" in said.err
    captured = Path(imported(folder)).read_text()
    assert "net::ERR https://h/cb?code=****** Authorization: Bearer ******" in captured
    assert "S3CRET" not in captured + said.out + said.err
