"""The plugin for pytest, run as its users do: tests of a small client, against a capture, on each transport."""

import json
import socket
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

import pytest

from mcpsniff.capture.reader import open_capture
from tests.capture.capture_files import save
from tests.cli.running import run
from tests.dialogue import play

pytest_plugins = ["pytester"]
REPO = Path(__file__).resolve().parents[2]
SERVER = REPO / "tests" / "replay" / "little_server.py"

CLIENT = """
import json, subprocess, urllib.request

INIT = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25",
    "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}}
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}

def call(number, a=20, name="add"):
    params = {"name": name, "arguments": {"a": a, "b": 22}}
    return {"jsonrpc": "2.0", "id": f"k-{number}", "method": "tools/call", "params": params}

LIST = {"jsonrpc": "2.0", "id": "k-9", "method": "tools/list"}

def on_pipes(command, *messages, kill=False):
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    said = []
    for message in messages:
        server.stdin.write(json.dumps(message) + "\\n")
        server.stdin.flush()
        while "id" in message:
            said.append(json.loads(server.stdout.readline()))
            if said[-1].get("id") == message["id"]:
                break
    if kill:
        server.kill()
    server.stdin.close()
    server.wait(20)
    return said

def over_http(url, *messages):
    headers, said = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}, []
    for message in messages:
        request = urllib.request.Request(url, json.dumps(message).encode(), headers)
        with urllib.request.urlopen(request, timeout=20) as response:
            if session := response.headers["Mcp-Session-Id"]:
                headers["Mcp-Session-Id"] = session
            for line in response:
                line = line.removeprefix(b"data: ")
                if line.startswith(b"{"):
                    said.append(json.loads(line))
    return said
"""

RECORDED = """\
@open 2025-11-25
C> {"jsonrpc":"2.0","id":1,"method":"tools/list"}
S> {"jsonrpc":"2.0","id":1,"result":{"tools":[]}}
C> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"add","arguments":{"a":20,"b":22}}}
S> {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"42"}]}}
C> EOF
S> EXIT 0
"""


@pytest.fixture(autouse=True)
def reachable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Servers find mcpsniff wherever the tests are, and nobody's captures are touched."""
    monkeypatch.setenv("PYTHONPATH", str(REPO))
    monkeypatch.setenv("MCPSNIFF_DIR", str(tmp_path / "captures"))


def tried(pytester: pytest.Pytester, tests: str, **files: str) -> pytest.RunResult:
    """Run these tests, which lie in a folder below with their captures."""
    folder = pytester.mkdir("suite")
    (folder / "client.py").write_text(CLIENT)
    for name, dialogue in {"x": RECORDED, **files}.items():
        save(folder, f"{name}.mcpcap", play(dialogue).records, transport="stdio")
    (folder / "test_it.py").write_text(f"from client import *\nimport pytest\n{tests}")
    # Where mcpsniff is installed, its entry point names the plugin, which is loaded already: a warning of pytest's.
    quiet = ("-W", "ignore::pytest.PytestAssertRewriteWarning")
    return pytester.runpytest_inprocess("-p", "mcpsniff.pytest", "-p", "no:cacheprovider", *quiet, "suite")


def test_a_client_that_asks_what_was_recorded_passes_on_each_transport(pytester: pytest.Pytester) -> None:
    result = tried(
        pytester,
        """
def test_pipes(mcp_replay):
    replay = mcp_replay("x.mcpcap")
    said = on_pipes(replay.command, INIT, READY, call(1), LIST)
    assert said[1] == {"jsonrpc": "2.0", "id": "k-1", "result": {"content": [{"type": "text", "text": "42"}]}}
    assert (replay.url, replay.process) == ("", None)
    assert (replay.report["served"], replay.report["missed"], replay.report["starts"]) == (3, 0, 1)

def test_http(mcp_replay):
    replay = mcp_replay("x.mcpcap", transport="http")
    assert replay.url.endswith("/mcp")
    assert over_http(replay.url, INIT, READY, LIST, call(1))[2]["result"]["content"][0]["text"] == "42"
    assert replay.process.poll() is None
    assert replay.report["served"] == 3
    assert replay.process.poll() is not None

def test_two_starts_are_one_session_of_tests(mcp_replay):
    replay = mcp_replay("x.mcpcap")
    on_pipes(replay.command, INIT, READY, call(1))
    on_pipes(replay.command, INIT, READY, LIST)
    assert replay.report["starts"] == 2

def test_what_is_allowed(mcp_replay):
    replay = mcp_replay("x.mcpcap", allow_missed=["server/*"], allow_unasked="tools/*")
    on_pipes(replay.command, {**LIST, "method": "server/discover"}, INIT, READY)
    mcp_replay("x.mcpcap", allow_unasked=True)

def test_other_arguments(mcp_replay):
    replay = mcp_replay("x.mcpcap", ignore="arguments.a")
    on_pipes(replay.command, INIT, READY, call(1, a=5), LIST)
    replay = mcp_replay("x.mcpcap", match="method")
    on_pipes(replay.command, INIT, READY, call(1, a=5), LIST)

def test_sse(mcp_replay):
    replay = mcp_replay("x.mcpcap", transport="sse", allow_unasked=True)
    with urllib.request.urlopen(replay.url, timeout=20) as stream:
        assert stream.readline() == b"event: endpoint\\n"
""",
    )
    result.assert_outcomes(passed=6)


def test_what_was_missed_or_never_asked_is_an_error_that_says_how_it_differs(pytester: pytest.Pytester) -> None:
    result = tried(
        pytester,
        """
def test_missed(mcp_replay):
    on_pipes(mcp_replay("x.mcpcap").command, INIT, READY, LIST, call(1), call(2, a="\\x1b[2J"))

def test_unasked(mcp_replay):
    replay = mcp_replay("x.mcpcap", transport="http")
    over_http(replay.url, INIT, READY, LIST)

def test_never_started(mcp_replay):
    mcp_replay("x.mcpcap")

def test_killed(mcp_replay):
    on_pipes(mcp_replay("x.mcpcap").command, INIT, READY, kill=True)

def test_failed(mcp_replay):
    said = on_pipes(mcp_replay("x.mcpcap").command, INIT, READY, call(1, a=1))
    assert said[1]["result"]
""",
    )
    result.assert_outcomes(passed=4, failed=1, errors=4)
    text = result.stdout.str()
    assert "\x1b[2J" not in text
    result.stdout.fnmatch_lines(
        [
            "*ERROR at teardown of test_missed*",
            "what the client asked is not what x.mcpcap has:",
            "missed: tools/call add is not in the capture; * differs in params.arguments.a",
            "    params.arguments.a (type): recorded 20, now *u001b*",
            "    ignore=['params.arguments.a'], or match=\"method\", takes it for the recorded one",
            "*ERROR at teardown of test_unasked*",
            "never asked: #* tools/call add",
            "*ERROR at teardown of test_never_started*",
            "nobody started the server that replays x.mcpcap",
            "*ERROR at teardown of test_killed*",
            "1 of the servers was killed before it could tell what it was asked*",
            "*_ test_failed _*",
            "*- mcp_replay -*",
            "missed: tools/call add is not in the capture*",
        ]
    )
    beside = text[text.index("- mcp_replay -") : text.index("short test summary")]
    assert "never asked" not in beside, "it failed before it could ask"


def test_a_capture_that_cannot_be_served_fails_the_test_in_one_sentence(pytester: pytest.Pytester) -> None:
    result = tried(
        pytester,
        """
def test_missing(mcp_replay):
    mcp_replay("none.mcpcap")

def test_empty(mcp_replay):
    mcp_replay("silent.mcpcap")

def test_transport(mcp_replay):
    mcp_replay("x.mcpcap", transport="pigeon")

def test_proxy(mcp_record):
    mcp_record.http("ftp://nowhere")
""",
        silent="S> hello\n",
    )
    result.assert_outcomes(failed=4)
    result.stdout.fnmatch_lines(["*none.mcpcap*", "*nothing to replay*", "*pigeon*", "*ftp*"])
    assert "Traceback" not in result.stdout.str()
    assert "During handling" not in result.stdout.str()
    assert "site-packages" not in result.stdout.str()


MISTAKES = """
import pathlib, sys

def told(start, *words):
    with pytest.raises(pytest.fail.Exception) as failure:
        start()
    for word in words:
        assert word in str(failure.value)
    assert "--" not in str(failure.value)

def test_replay(mcp_replay, tmp_path):
    for name, value, said in (
        ("allow_unasked", 5, "allow_unasked wants True, False or names of methods, not 5"),
        ("allow_missed", [1], "allow_missed wants True, False or names of methods, not [1]"),
        ("allow_missed", None, "not None"),
        ("ignore", 5, "ignore wants a path or several, not 5"),
        ("match", "foo", "match is one of exact, method, sequence, not 'foo'"),
        ("timing", "fast", "timing= wants original, none, or a speed"),
        ("timeout", float("nan"), "timeout is a number of seconds from 0.001"),
        ("timeout", True, "not True"),
        ("server", 5, "server is a part of an address"),
        ("server", "nowhere", "'nowhere'"),
        ("transport", None, "transport is one of"),
    ):
        told(lambda: mcp_replay("x.mcpcap", **{name: value}), said)
    for path in (None, 5, b"x", "x\\0"):
        told(lambda: mcp_replay(path), "mcp_replay wants a path, not ")
    told(lambda: mcp_replay("hidden.mcpcap"), "allow_redacted=True")

def test_record(mcp_record, tmp_path):
    told(lambda: mcp_record.stdio("python x"), "a command is a list of words, such as ['python', 'x'], not the text")
    for command in ([], None, [1], 5, ["a\\0"]):
        told(lambda: mcp_record.stdio(command), "a command is a list of words")
    for to in (".", "..", "client.py/x.mcpcap"):
        told(lambda: mcp_record.stdio(["true"], to=to), "cannot keep the capture as")
    told(lambda: mcp_record.stdio(["true"], to=5), "to wants a path")
    assert mcp_record.recordings == []

def test_taken(mcp_record, tmp_path):
    recording = mcp_record.stdio([pathlib.Path(sys.executable), SERVER], to=tmp_path / "x.mcpcap")
    on_pipes(recording.command, INIT, READY)
    (tmp_path / "x.mcpcap").mkdir()

def test_connected(mcp_record):
    recording = mcp_record.stdio([sys.executable, SERVER])
    with subprocess.Popen(recording.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as client:
        client.stdin.write(json.dumps(INIT).encode() + b"\\n")
        client.stdin.flush()
        client.stdout.readline()
        with pytest.raises(Exception, match="still being recorded: close the client before you ask"):
            recording.messages()
    assert recording.messages() == []

def test_findings(mcp_record):
    recording = mcp_record.stdio([sys.executable, "-c", "print('no JSON', flush=True); input()"])
    on_pipes(recording.command, READY)
    assert recording.findings("error") == []
"""


def test_what_is_asked_wrongly_is_told_at_the_call_in_a_sentence(pytester: pytest.Pytester) -> None:
    hidden = RECORDED.replace('"a":20', '"password":"Sesame-4711"')
    file = save(pytester.path, "whole.mcpcap", play(hidden).records, transport="stdio")
    (pytester.path / "suite").mkdir()
    done = run("redact", str(file), "-o", str(pytester.path / "suite" / "hidden.mcpcap"))
    assert done.status == 0, done
    (pytester.path / "suite").rename(pytester.path / "redacted")
    result = tried(
        pytester,
        f"SERVER = {str(SERVER)!r}\n{MISTAKES}".replace('"hidden.mcpcap"', '"../redacted/hidden.mcpcap"'),
    )
    result.assert_outcomes(passed=3, failed=2, errors=1)
    text = result.stdout.str()
    result.stdout.fnmatch_lines(["*cannot keep the capture as *x.mcpcap: Is a directory*"])
    assert "Traceback" not in text
    assert "Finding(" not in text
    assert "Frame(" not in text
    assert "item: <MCP101 error by server at #" in text
    assert "<#2 c2s request 'initialize': b'{" in text
    assert not list(pytester.path.rglob("*.part"))


def test_the_recipe_for_a_server_holds(pytester: pytest.Pytester) -> None:
    """That of docs/pytest.md."""
    page = (REPO / "docs" / "pytest.md").read_text()
    recipe = page.partition("## A server against its captures")[2].partition("```python\n")[2].partition("```")[0]
    folder = pytester.mkdir("suite")
    (folder / "captures").mkdir()
    same = RECORDED.partition('C> {"jsonrpc":"2.0","id":1')[0]
    for name, dialogue in (("same", same), ("other", RECORDED)):
        file = save(folder / "captures", f"{name}.mcpcap", play(dialogue).records, transport="stdio")
        file.write_text(file.read_text().replace(r"\"name\":\"s\"", r"\"name\":\"little\""))
    (folder / "test_it.py").write_text(recipe.replace('"server.py"', repr(str(SERVER))))
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider", "suite")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*test_the_server_answers_as_it_did[[]other]*"])


def test_a_session_is_recorded_and_can_be_asked_about(pytester: pytest.Pytester) -> None:
    result = tried(
        pytester,
        f"""
import sys
from tests.replay.little_server import serving

def test_pipes(mcp_record):
    recording = mcp_record.stdio([sys.executable, {str(SERVER)!r}], to="kept/new.mcpcap")
    on_pipes(recording.command, INIT, READY, call(1))
    assert [message.method for message in recording.messages()][:3] == ["initialize", None, "notifications/initialized"]
    assert recording.messages("tools/call")[0].params["arguments"] == {{"a": 20, "b": 22}}
    assert recording.findings("error") == []

def test_http(mcp_record):
    with serving() as served:
        recording = mcp_record.http(served.origin + "/mcp")
        assert recording.url != served.origin + "/mcp"
        over_http(recording.url, INIT, READY, call(1))
        assert recording.stop() == recording.path
    assert [message.n for message in recording.messages("tools/call")]

def test_again(mcp_replay):
    on_pipes(mcp_replay("kept/new.mcpcap").command, INIT, READY, call(1))

def test_nothing(mcp_record):
    recording = mcp_record.stdio(["true"])
    with pytest.raises(Exception, match="nothing was recorded"):
        recording.messages()

def test_failed(mcp_record):
    recording = mcp_record.stdio([sys.executable, {str(SERVER)!r}], to="kept/failed.mcpcap")
    on_pipes(recording.command, INIT, READY)
    assert False
""",
    )
    result.assert_outcomes(passed=4, failed=1)
    kept = pytester.path / "suite" / "kept"
    assert [file.name for file in kept.iterdir()] == ["new.mcpcap"]
    assert (kept / "new.mcpcap").stat().st_mode & 0o777 == 0o600
    assert open_capture(str(kept / "new.mcpcap")).header.transport == "stdio"


def test_a_server_ends_with_a_run_that_is_killed(tmp_path: Path) -> None:
    file = save(tmp_path, "x.mcpcap", play(RECORDED).records, transport="stdio")
    code = f"""
import time
from pathlib import Path
from mcpsniff.testing.replays import Replay
print(Replay(Path({str(file)!r}), Path({str(tmp_path)!r}), "http", []).url, flush=True)
time.sleep(60)
"""
    run = subprocess.Popen([sys.executable, "-c", code], cwd=REPO, stdout=subprocess.PIPE, text=True)
    assert run.stdout is not None
    url = run.stdout.readline()
    run.kill()
    run.communicate()
    place = ("127.0.0.1", int(url.rpartition(":")[2].partition("/")[0]))
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and listens(place):
        time.sleep(0.05)
    assert not listens(place)


def listens(place: tuple[str, int]) -> bool:
    try:
        socket.create_connection(place, 5).close()
    except ConnectionError:
        return False
    return True


def test_the_plugin_costs_a_run_without_it_next_to_nothing() -> None:
    """It is loaded in every run of pytest where mcpsniff is installed."""
    code = "import pytest, sys; known = set(sys.modules); import mcpsniff.pytest; print(*set(sys.modules) - known)"
    done = subprocess.run([sys.executable, "-c", code], cwd=REPO, capture_output=True, text=True)
    assert set(done.stdout.split()) <= {"mcpsniff", "mcpsniff.pytest"}, done.stderr


def test_pytest_finds_the_plugin_under_the_name_by_which_it_is_loaded() -> None:
    """Under another name, `-p mcpsniff.pytest` would load it twice."""
    project = tomllib.loads((REPO / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"] == {"mcpsniff.pytest": "mcpsniff.pytest"}


def test_reports_of_several_starts_are_one() -> None:
    from mcpsniff.testing.verdict import faults, merged

    def one(numbers: list[int], missed: list[str]) -> dict[str, Any]:
        unasked = [{"n": n, "method": "ping", "target": None} for n in numbers]
        misses = [{"method": name, "text": name, "differences": []} for name in missed]
        answers = {"same": 1, "other": 0, "differences": [], "stray": 0}
        return {
            "recorded": 5,
            "served": 2,
            "missed": len(missed),
            "misses": misses,
            "never_asked": unasked,
            "answers": answers,
        }

    whole = merged([one([1, 2], ["a/b"]), one([2, 3], [])])
    assert json.loads(json.dumps(whole))["answers"]["same"] == 2
    assert (whole["served"], whole["missed"], whole["played"]) == (4, 1, 4)
    assert faults(whole) == ["missed: a/b", "never asked: #2 ping"]
    assert faults(whole, allow_missed=["a/*"], allow_unasked=["ping"]) == []
    assert faults({**whole, "missed": 3})[1] == "missed: 2 more"
