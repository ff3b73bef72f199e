"""`mcpsniff replay --to` as a user runs it, against small servers on every transport."""

import json
import os
import pty
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from mcpsniff.capture.writer import CaptureWriter
from tests.captures.samples import FOLDER
from tests.cli.ready import ready
from tests.cli.running import COMMAND, PATIENCE, environment, run
from tests.dialogue import play
from tests.replay.little_server import SECRET, Served, serving

LITTLE = Path(__file__).with_name("little_server.py")
PIPES = [sys.executable, str(LITTLE)]

SESSION = """
@open 2025-11-25
C> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{"a":2,"b":40}}}
S> {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"adding"}}
S> {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"42"}]}}
C> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"ask","arguments":{}}}
S> {"jsonrpc":"2.0","id":"q-1","method":"elicitation/create","params":{"message":"Who?","requestedSchema":{"type":"object","properties":{}}}}
C> {"jsonrpc":"2.0","id":"q-1","result":{"action":"decline"}}
S> {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"{\\"action\\": \\"decline\\"}"}]}}
C> {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"drop","arguments":{"all":true}}}
S> {"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"{\\"all\\": true}"}]}}
"""  # noqa: E501
IGNORE = ("--ignore", "result.serverInfo", "--ignore", "result.capabilities", "--ignore", "result.instructions")


def kept(path: Path, dialogue: str, transport: str = "stdio", **header: object) -> Path:
    """Write a dialogue as a capture."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    fields = {"run": "01J", "started": "2026-11-29T10:00:00.000000Z", "transport": transport, **header}
    writer = CaptureWriter(descriptor, str(path), fields)
    writer.append(play(dialogue.strip()).records)
    writer.close()
    return path


@pytest.fixture
def capture(tmp_path: Path) -> str:
    return str(kept(tmp_path / "session.mcpcap", SESSION))


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with serving() as served:
        yield served


@pytest.mark.parametrize("place", ["stdio", "/mcp", "/sse"])
def test_a_server_that_says_the_same_leaves_no_difference(capture: str, served: Served, place: str) -> None:
    target = ["--", *PIPES] if place == "stdio" else [served.origin + place]
    done = run("replay", capture, "--allow-writes", *IGNORE, "--to", *target)
    assert (done.status, done.out.splitlines()[-1]) == (0, "4 requests: 4 same"), done.out + done.err
    done = run("replay", capture, *IGNORE, "--to", *target)
    assert done.status == 0
    assert "not called: its tool is declared destructive" in done.out
    assert "--allow-writes" in done.out


def test_what_differs_is_shown_counted_and_reported(capture: str, tmp_path: Path) -> None:
    changed = tmp_path / "changed.py"
    changed.write_text(
        LITTLE.read_text(encoding="utf-8").replace('"adding"', '"sums"').replace("total = ", "total = 1 + ")
    )
    report = tmp_path / "report.json"
    command = ["replay", capture, *IGNORE, "--report", str(report), "--to", "--", sys.executable, str(changed)]
    done = run(*command)
    assert done.status == 1
    assert '~ result.content[0].text: "42" → "43"' in done.out
    assert "notifications/message: 1 of 1 say something else" in done.out
    said = json.loads(report.read_text(encoding="utf-8"))
    assert said["differs"] is True
    assert said["states"] == {"same": 2, "differs": 1, "left-out": 1}
    (talk,) = said["conversations"]
    (difference,) = talk["requests"][1]["differences"]
    assert (difference["recorded"], difference["live"]) == ("42", "43")
    assert talk["requests"][1]["now_us"] > 0
    assert report.stat().st_mode & 0o777 == 0o600


def test_a_run_that_calls_no_tool_at_all_is_no_success(tmp_path: Path) -> None:
    calls = [line for line in SESSION.strip().splitlines() if '"id":3' in line]
    capture = str(kept(tmp_path / "c.mcpcap", "\n".join(["@open 2025-11-25", *calls])))
    done = run("replay", capture, *IGNORE, "--to", "--", *PIPES)
    assert (done.status, done.out.splitlines()[-2]) == (1, "2 requests: 1 same, 1 not called")
    assert done.out.splitlines()[-1].startswith("no tool was called, which counts as a difference: --allow-writes ")


def test_a_command_that_is_not_there_is_said(capture: str) -> None:
    done = run("replay", capture, "--to", "--", "no-such-command-here")
    assert (done.status, done.out) == (3, "")
    assert done.err.startswith("mcpsniff: command not found: no-such-command-here")


@pytest.mark.parametrize("path", ["/mcp", "/sse"])
def test_a_url_at_which_nobody_is_is_said(capture: str, path: str, tmp_path: Path) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{nobody.getsockname()[1]}{path}"
        done = run("replay", capture, "--update", str(tmp_path / "new.mcpcap"), "--to", url)
    assert (done.status, done.out) == (3, "")
    assert done.err == f"mcpsniff: cannot reach {url}: Connection refused\n"
    assert not (tmp_path / "new.mcpcap").exists()


@pytest.mark.parametrize(("option", "name"), [("--report", "f.json"), ("--update", "f.mcpcap")])
def test_a_file_that_cannot_be_written_is_said_before_anything_is_sent(
    capture: str, tmp_path: Path, option: str, name: str
) -> None:
    trace = tmp_path / "started"
    done = run("replay", capture, option, str(tmp_path / "no" / name), "--to", "--", "touch", str(trace))
    assert (done.status, done.out) == (3, "")
    assert "cannot write" in done.err
    assert not trace.exists()


def test_no_report_takes_the_place_of_a_capture(capture: str, tmp_path: Path) -> None:
    same = tmp_path / "same"
    same.symlink_to(capture)
    for words in (("--report", str(same)), ("--report", "new.mcpcap", "--update", "new.mcpcap")):
        done = run("replay", capture, *words, "--to", "--", *PIPES)
        assert (done.status, done.out) == (2, "")
        assert "--report would" in done.err


def test_a_server_that_ends_at_once_is_told_with_its_last_words(capture: str) -> None:
    done = run("replay", capture, "--to", "--", "sh", "-c", "echo 'no \033[31mlicence' >&2; exit 7")
    assert done.status == 1
    assert "ended with status 7" in done.out
    assert "stderr no \\x1b[31mlicence" in done.out
    assert "4 requests:" in done.out


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_replay_that_is_stopped_leaves_nothing_behind(
    capture: str, tmp_path: Path, number: signal.Signals, status: int
) -> None:
    trace = tmp_path / "pid"
    server = ["sh", "-c", f"echo $$ > {trace}; sleep 600 & wait"]
    words = ["replay", capture, "--update", str(tmp_path / "new.mcpcap"), "--to", "--", *server]
    process = subprocess.Popen(
        [*COMMAND, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment(), cwd=tmp_path
    )
    deadline = time.monotonic() + PATIENCE
    while not (trace.exists() and trace.read_text(encoding="utf-8")) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(number)
    assert process.communicate(timeout=PATIENCE)[0] == b""
    assert process.returncode == status
    group = trace.read_text(encoding="utf-8").strip()
    listed = subprocess.run(["ps", "-axo", "pgid=,stat="], capture_output=True, text=True, check=True).stdout
    alive = [line for line in listed.splitlines() if line.split()[0] == group and "Z" not in line.split()[1]]
    assert alive == []  # what was killed may wait for being reaped
    assert {path.name for path in tmp_path.iterdir()} == {"pid", "session.mcpcap"}


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--serve", "stdio", "--to", "http://127.0.0.1:1/"),
        ("--header", "nothing", "--to", "http://127.0.0.1:1/"),
        ("--header", "A: b\nC: d", "--to", "http://127.0.0.1:1/"),
        ("--env", "A=b", "--to", "http://127.0.0.1:1/"),
        ("--header", "A: b", "--to", "--", "true"),
        ("--env", "NO_SUCH_VARIABLE_HERE", "--to", "--", "true"),
        ("--normalise", "everything", "--to", "--", "true"),
        ("--normalise", "uuid", "--no-normalise", "--to", "--", "true"),
        ("--timing", "slow", "--to", "--", "true"),
        ("--update", "new.json", "--to", "--", "true"),
        ("--server", "elsewhere", "--to", "--", "true"),
        ("--strict", "--to", "--", "true"),
        ("--to", "host:80/mcp"),
    ],
)
def test_what_cannot_be_meant_is_refused_and_nothing_is_started(capture: str, words: tuple[str, ...]) -> None:
    done = run("replay", capture, *words)
    assert (done.status, done.out) == (2, "")
    assert len(done.err.splitlines()) == 1


@pytest.mark.parametrize("place", ["stdio", "/guarded"])
def test_the_new_session_is_kept_without_what_was_given(
    capture: str, served: Served, tmp_path: Path, place: str
) -> None:
    new = tmp_path / "new.mcpcap"
    given = ("--env", f"MY_KEY={SECRET}") if place == "stdio" else ("--header", f"Authorization: Bearer {SECRET}")
    target = ["--", *PIPES] if place == "stdio" else [served.origin + place]
    words = ["replay", capture, *IGNORE, "--dir", str(tmp_path / "d"), "--update", str(new), *given, "--to", *target]
    done = run(*words)
    assert done.status == 0, done.out + done.err
    assert new.stat().st_mode & 0o777 == 0o600
    assert SECRET not in new.read_text(encoding="utf-8")
    shown = run("show", str(new), "--format", "json")
    assert [json.loads(line).get("method") for line in shown.out.splitlines()].count("tools/call") >= 2
    again = run("replay", str(new), *given, "--to", *target)
    assert (again.status, again.out.splitlines()[-1]) == (0, "4 requests: 4 same"), again.out + again.err


def test_a_secret_that_the_server_says_back_is_neither_kept_nor_shown(tmp_path: Path) -> None:
    code = "import json,os,sys\nprint(os.environ['API_KEY'],file=sys.stderr)\nfor line in sys.stdin:\n"
    code += " m=json.loads(line)\n key=os.environ['API_KEY']\n"
    code += " print(json.dumps({'jsonrpc':'2.0','method':'notifications/'+key}))\n"
    code += " result={'x'*50+key:'y'*400+key*20,'z':'q'*1990+key}\n"
    code += " if 'id' in m: print(json.dumps({'jsonrpc':'2.0','id':m['id'],'result':result}),flush=True);sys.exit(3)"
    dialogue = '@open 2025-11-25\nC> {"jsonrpc":"2.0","id":1,"method":"ping"}\nS> {"jsonrpc":"2.0","id":1,"result":{}}'
    capture = kept(tmp_path / "c.mcpcap", dialogue)
    secret, new, report = 'quo"ted-s3cret', tmp_path / "new.mcpcap", tmp_path / "r.json"
    words = ["--update", str(new), "--report", str(report), "--env", f"API_KEY={secret}", "--dir", str(tmp_path / "d")]
    done = run("replay", str(capture), *words, "--to", "--", sys.executable, "-c", code)
    text = new.read_text(encoding="utf-8")
    for told in (text, report.read_text(encoding="utf-8"), done.out, done.err):
        assert "ted-s3" not in told
        assert "quo" not in told
        assert "**" in told or told is done.err
    assert '"what":"given"' in text


def on_terminal_with(typed: bytes, *words: str) -> tuple[int, str]:
    """Run on a terminal on which something has been typed already."""
    ours, theirs = pty.openpty()
    os.write(ours, typed)
    child = ready().start(words, [theirs] * 3, environment(), None)
    os.close(theirs)
    shown = b""
    with suppress(OSError):  # Linux says EIO where macOS says end of file
        while block := os.read(ours, 65536):
            shown += block
    os.close(ours)
    return child.wait(PATIENCE), shown.decode()


AS_RECORDED = ("--as-recorded", *IGNORE)


def test_the_command_in_a_capture_is_run_only_by_somebody_who_has_seen_it(tmp_path: Path) -> None:
    trace = tmp_path / "pwned"
    argv = ["touch", str(trace), "a\x1b[2Jb"]
    capture = str(kept(tmp_path / "session.mcpcap", SESSION, argv=argv, cwd=str(tmp_path)))
    done = run("replay", capture, "--as-recorded")
    assert done.status == 2
    assert "There is no terminal to ask on" in done.err
    assert "\x1b" not in done.err
    status, shown = on_terminal_with(b"n\n", "replay", capture, "--as-recorded")
    assert status == 130
    assert f"run touch {trace} 'a\\x1b[2Jb' in {tmp_path}? [y/N]" in shown
    assert not trace.exists()
    done = run("replay", capture, "--as-recorded", "--yes")
    assert trace.exists()
    assert done.status == 1  # it is no server


def test_a_path_that_names_nothing_and_orders_that_contradict_are_told(tmp_path: Path) -> None:
    capture = str(kept(tmp_path / "session.mcpcap", SESSION))
    done = run("replay", capture, *IGNORE, "--ignore", "result.nosuch", "--to", "--", *PIPES)
    assert "--ignore result.nosuch names nothing that was recorded" in done.err
    done = run("replay", capture, "--serve", "stdio", "--to", "--", *PIPES)
    assert done.status == 2
    assert "only one of --serve, --to and --as-recorded" in done.err


def test_as_recorded_runs_the_server_where_it_ran(tmp_path: Path) -> None:
    capture = str(kept(tmp_path / "session.mcpcap", SESSION, argv=PIPES, cwd=str(tmp_path)))
    done = run("replay", capture, *AS_RECORDED, "--yes")
    assert done.status == 0, done.out + done.err
    assert done.err.startswith("mcpsniff: run ")


def test_a_masked_command_is_not_run(tmp_path: Path) -> None:
    capture = str(kept(tmp_path / "session.mcpcap", SESSION, argv=["server", "--token", "***"], cwd=str(tmp_path)))
    done = run("replay", capture, "--as-recorded", "--yes")
    assert done.status == 2
    assert "give the server with --to" in done.err


def test_a_redacted_capture_is_refused_with_the_places(tmp_path: Path, capture: str) -> None:
    redacted = tmp_path / "redacted.mcpcap"
    first, *rest = Path(capture).read_text(encoding="utf-8").splitlines()
    header = {**json.loads(first), "redacted": {"by": "x", "values": 1, "places": 1, "kinds": {"email": 1}}}
    note = '[3,"redact",0,{"what":"email","start":0,"length":4,"at":"params.x"}]'
    redacted.write_text("\n".join([json.dumps(header), *rest, note]) + "\n", encoding="utf-8")
    done = run("replay", str(redacted), "--to", "--", *PIPES)
    assert (done.status, done.out) == (3, "")
    assert "--allow-redacted" in done.err
    assert "email" in done.err
    assert run("replay", str(redacted), "--allow-redacted", *IGNORE, "--to", "--", *PIPES).status == 0


@pytest.mark.parametrize("name", ["faults", "hostile", "modern", "noise", "notes", "rail-http", "torn", "weather-sse"])
def test_every_sample_can_be_sent_to_a_server_that_knows_nothing_of_it(name: str, served: Served) -> None:
    words = ["replay", str(FOLDER / f"{name}.mcpcap"), "--timeout", "0.3", "--to"]
    for target in (["--", *PIPES], [f"{served.origin}/mcp"]):
        done = run(*words, *target)
        assert done.status == 1, done.err
        assert "request" in done.out
        assert not set(map(chr, [*range(10), *range(11, 32), 0x202E])) & set(done.out + done.err)
