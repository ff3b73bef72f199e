"""`mcpsniff resend --as`: what is printed is run, by a shell and by Python, against a server of each transport."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from mcpsniff.capture.reader import open_capture
from mcpsniff.cli.main import run
from mcpsniff.errors import UsageError
from mcpsniff.protocol.http import Http
from mcpsniff.replay.reading import read_script
from mcpsniff.replay.resend.curl import curl, json_text, shell_word
from mcpsniff.replay.resend.holes import Hole, form, header_value, holes, json_object, plain, url, words
from mcpsniff.replay.resend.order import Order, order_of
from mcpsniff.replay.resend.pick import Picked
from mcpsniff.replay.resend.python import python
from mcpsniff.replay.resend.talk import edited_message
from mcpsniff.replay.script import PIPE
from tests.capture.capture_files import save
from tests.captures.samples import FOLDER
from tests.dialogue import play
from tests.replay.little_server import SECRET, Served, serving
from tests.replay.staging import script_of
from tests.transcript import http_sessions

SERVER = Path(__file__).with_name("little_server.py")
EVIL = "\u202e\x9b31m北京'$(touch pwned)`\"\\\n"
ADD = {"name": "add", "arguments": {"a": 20, "b": 22}}
ASK = {"name": "ask", "arguments": {}}


def call(number: int, params: Any) -> str:
    return json.dumps(
        {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}, ensure_ascii=False
    ).replace("\x9b", "\\u009b")


def told(number: int) -> str:
    return f'{{"jsonrpc":"2.0","id":{number},"result":{{"content":[]}}}}'


QUESTION = '{"jsonrpc":"2.0","id":5,"method":"elicitation/create","params":{"message":"Who?"}}'
ANSWER = '{"jsonrpc":"2.0","id":5,"result":{"action":"accept","content":{"who":"me"}}}'

PIPES = f"""\
@open 2025-11-25
C> {call(1, ADD)}
S> {told(1)}
C> {call(2, ASK)}
S> {QUESTION}
C> {ANSWER}
S> {told(2)}
C> {call(3, {"name": "echo", "arguments": {"text": EVIL}})}
S> {told(3)}
"""
STREAMABLE = f"""\
@http
@open 2025-11-25
C> POST /guarded
    Authorization: Bearer **********
    X-Odd: it's "so" $HOME `id`
    {call(1, ADD)}
S> 200 {told(1)}
C> POST /guarded {call(2, ASK)}
S> 200 STREAM
S> EVENT {QUESTION}
C2> POST /guarded {ANSWER}
S2> 202
S> EVENT {told(2)}
S> END
C3> GET /.well-known/oauth-protected-resource?access_token=*****&x=1
S3> 404 nothing
"""
LEGACY = f"""\
@http
@sse
C> POST /messages?sessionId=1 {call(1, ADD)}
S> 202
S9> EVENT {told(1)}
C> POST /messages?sessionId=1 {call(2, ASK)}
S> 202
S9> EVENT {QUESTION}
C> POST /messages?sessionId=1 {ANSWER}
S> 202
S9> EVENT {told(2)}
"""


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with serving() as one:
        yield one


def capture(folder: Path, dialogue: str, **header: Any) -> tuple[Path, list[int]]:
    """A capture, and the numbers of the client's calls in it."""
    played = play(dialogue)
    path = save(folder, "x.mcpcap", played.records, **header)
    calls = [
        event.n for event in played.events if getattr(event, "method", "") == "tools/call" and hasattr(event, "raw")
    ]
    return path, calls


def printed(capsysbinary: pytest.CaptureFixture[bytes], *options: str | Path) -> str:
    status = run(["resend", *map(str, options)])
    out, err = capsysbinary.readouterr()
    assert status == 0, err.decode()
    assert all(line.isprintable() for line in out.decode().splitlines()), "safe to print"
    return out.decode()


def ran(words: list[str], text: str, folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words, input=text, cwd=folder, env={**os.environ, **env}, capture_output=True, text=True, timeout=60
    )


def text_of(said: str) -> str:
    """The text in the result that a program printed, as JSON or as the data of an event."""
    lines = [line.removeprefix("data: ") for line in said.splitlines() if not line.startswith("event:")]
    start = next(number for number, line in enumerate(lines) if line.startswith("{") and "notifications/" not in line)
    return str(json.loads("\n".join(lines[start:]))["result"]["content"][0]["text"])


@pytest.mark.parametrize(
    ("dialogue", "path"), [(PIPES, "/mcp"), (STREAMABLE, "/mcp"), (LEGACY, "/sse"), (PIPES, "/sse")]
)
def test_curl_gets_the_answer_over_each_transport(
    dialogue: str, path: str, served: Served, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    file, calls = capture(tmp_path, dialogue)
    text = printed(capsysbinary, file, str(calls[0]), "--as", "curl", "--to", served.origin + path)
    done = ran(["sh"], text, tmp_path, AUTHORIZATION=SECRET)
    assert done.returncode == 0, (text, done.stderr)
    assert text_of(done.stdout) == "42"


@pytest.mark.parametrize(
    ("dialogue", "path"), [(STREAMABLE, "/mcp"), (LEGACY, "/sse"), (STREAMABLE, "/sse"), (PIPES, "")]
)
def test_python_gets_the_answer_and_gives_those_that_were_recorded(
    dialogue: str, path: str, served: Served, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    file, calls = capture(tmp_path, dialogue, argv=[sys.executable, str(SERVER)], cwd=str(tmp_path))
    to = ["--to", served.origin + path] if path else []
    for number, expected in zip(calls, ("42", '{"action": "accept", "content": {"who": "me"}}'), strict=False):
        text = printed(capsysbinary, file, str(number), "--as", "python", *to)
        done = ran([sys.executable, "-"], text, tmp_path, AUTHORIZATION=SECRET)
        assert done.returncode == 0, (text, done.stderr)
        assert text_of(done.stdout) == expected
        assert served.twice == set(), "headers, which some servers refuse"


@pytest.mark.parametrize("form", ["curl", "python"])
def test_hostile_text_arrives_as_it_was_and_does_nothing(
    form: str, served: Served, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    file, calls = capture(tmp_path, PIPES)
    text = printed(capsysbinary, file, str(calls[2]), "--as", form, "--to", f"{served.origin}/mcp")
    done = ran(["sh"] if form == "curl" else [sys.executable, "-"], text, tmp_path)
    assert done.returncode == 0, (text, done.stderr)
    assert served.asked[-1]["params"]["arguments"]["text"] == EVIL
    assert not list(tmp_path.glob("pwned"))


@pytest.mark.parametrize("form", ["curl", "python"])
def test_a_secret_is_a_variable_that_must_be_set(
    form: str, served: Served, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """Also where the capture has it (--keep-secrets)."""
    for recorded in (STREAMABLE, STREAMABLE.replace("Bearer **********", "Bearer EX-recorded")):
        file, calls = capture(tmp_path, recorded)
        text = printed(capsysbinary, file, str(calls[0]), "--as", form, "--to", f"{served.origin}/guarded")
        assert "EX-recorded" not in text
        assert "AUTHORIZATION" in text.splitlines()[1 if form == "curl" else 2]
        words = ["sh"] if form == "curl" else [sys.executable, "-"]
        env = {name: value for name, value in os.environ.items() if name != "AUTHORIZATION"}
        done = subprocess.run(words, input=text, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=60)
        assert done.returncode
        assert "AUTHORIZATION" in done.stderr
        assert text_of(ran(words, text, tmp_path, AUTHORIZATION=SECRET).stdout) == "42"
        assert served.heads[-1]["x-odd"] == 'it\'s "so" $HOME `id`'
        assert "authorization" in served.heads[-2], "in the handshake, too"


def test_an_exchange_of_http_without_a_message_is_for_curl(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    file, _ = capture(tmp_path, STREAMABLE)
    numbers = [event.n for event in play(STREAMABLE).events if isinstance(event, Http)]
    text = printed(capsysbinary, file, str(numbers[-1]), "--as", "curl")
    assert "oauth-protected-resource?access_token='\"${ACCESS_TOKEN:?is masked in the capture}\"'&x=1'" in text
    assert "--data" not in text
    assert run(["resend", str(file), str(numbers[-1]), "--as", "python"]) == 2


def test_a_number_of_the_answer_means_its_request(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    sample = FOLDER / "rail-http.mcpcap"
    assert printed(capsysbinary, sample, "21", "--as", "curl") == printed(capsysbinary, sample, "19", "--as", "curl")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["999", "--as", "curl"], "there is no #999"),
        (["x", "--as", "curl"], "such as 12"),
        (["3", "--as", "curl"], "#3 is no request of the client"),
        (["15", "--as", "curl"], "over pipes, where curl cannot speak"),
        ([], "say which request"),
    ],
)
def test_what_cannot_be_printed_is_said(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = words or ["--as", "curl"]
    where = [str(FOLDER / "weather.mcpcap")] if words[0] != "--as" else []
    assert run(["resend", *where, *words]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("upstream", ["file:///etc/passwd", "http://[::1/mcp", "http://h:99999999/mcp"])
def test_a_server_whose_url_cannot_be_used_has_to_be_named(
    upstream: str, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    file, calls = capture(tmp_path, STREAMABLE, transport="http")
    file.write_text(file.read_text().replace('"upstream":"http://127.0.0.1:8000"', f'"upstream":"{upstream}"'))
    for way in ("curl", "python"):
        status = run(["resend", str(file), str(calls[0]), "--as", way])
        said = capsysbinary.readouterr()
        assert (status, said.out) == (2, b"")
        assert b"--to URL says where it is" in said.err
        assert run(["resend", str(file), str(calls[0]), "--as", way, "--to", "http://[::1/mcp"]) == 2
        assert b"is no URL" in capsysbinary.readouterr().err


def test_what_was_edited_is_printed(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    monkeypatch.setenv("VISUAL", "sed -i.bak 's/: 20/: 30/'")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    file, calls = capture(tmp_path, STREAMABLE)
    for way, shell in (("curl", ["sh"]), ("python", [sys.executable, "-"])):
        text = printed(capsysbinary, file, str(calls[0]), "--edit", "--as", way, "--to", f"{served.origin}/mcp")
        assert text_of(ran(shell, text, tmp_path, AUTHORIZATION=SECRET).stdout) == "52"


def test_headers_that_repeat_what_was_edited_are_made_anew() -> None:
    meta = '"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}'
    old = f'{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"a","arguments":{{"x":1}},{meta}}}}}'
    script = script_of(f"""\
@http
C> POST /mcp
    MCP-Protocol-Version: 2026-07-28
    Mcp-Method: tools/call
    Mcp-Name: a
    Mcp-Param-X: 1
    X-Odd: odd
    {old}
S> 200 {told(1)}
""")
    talk = script.talks[0]
    scene = talk.scenes[0]
    assert scene.cue is not None
    made = edited_message(scene.cue, old.replace('"a"', '"b"').encode())
    both: list[dict[str, Any]] = [{}, {"url_to": "http://h/mcp"}]
    for to in both:
        order = order_of(Picked(talk, scene, made, scene.cue.http), script, "x", **to)
        headers = {name.lower(): plain(value) for name, value in order.headers}
        assert (headers["mcp-name"], headers["x-odd"], headers["mcp-method"]) == ("b", "odd", "tools/call")
        assert "mcp-param-x" not in headers


def test_a_large_body_stands_below_the_command(served: Served, tmp_path: Path) -> None:
    text = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "x" * 300_000}})
    made = curl(Order("x", "bare", text.encode(), url=(f"{served.origin}/mcp",)))
    assert ran(["sh"], made, tmp_path).returncode == 0
    assert len(served.asked[-1]["params"]["protocolVersion"]) == 300_000


def test_bytes_that_are_no_text_are_written_by_printf() -> None:
    raw = b"-n '%s' \xff\x00\x1b[2J \\ x"
    assert json_text(raw) is None
    made = curl(Order("x", "bare", raw, url=("http://x/",)))
    assert made.isascii()
    shell = made.partition("printf ")[2].partition(" |\n")[0]
    assert subprocess.run(["sh", "-c", f"printf {shell}"], capture_output=True).stdout == raw


def test_json_on_one_line_means_the_same() -> None:
    text = '\ufeff{\r\n\t"a": "\u202eé\U000e0101", "b":[1,\n"\\u001b"]}'
    made = json_text(text.encode())
    assert made is not None
    assert made.isprintable()
    assert "é" in made
    assert json.loads(made) == json.loads(text.removeprefix("\ufeff"))
    assert json_text('{"a": \u2028}'.encode()) is None, "outside of a string it is no JSON"


def test_shell_words_mean_what_they_say() -> None:
    for text in ("", "plain", "it's", "$HOME `id` \\", "caf\xe9", "a\x1bb", "-n", "~", "#x", "a=b", "*"):
        done = subprocess.run(["sh", "-c", f"printf %s {shell_word((text,))}"], capture_output=True)
        assert done.stdout.decode("latin-1") == text, text


def test_literals_mean_what_they_say() -> None:
    argv = ["a'b", 'a"b', "\\", "\\\u202e", "\x1b[2J", "caf\udce9", EVIL]
    made = python(Order(EVIL, PIPE, b"{}", command=[(word,) for word in argv]))
    assert all(line.isprintable() for line in made.splitlines())
    line = next(line for line in made.splitlines() if line.startswith("COMMAND = "))
    found: dict[str, Any] = {}
    exec(line, found)
    assert found["COMMAND"] == argv


def test_holes_are_named_after_what_announces_them() -> None:
    assert header_value("Authorization", "Bearer abc") == ("Bearer ", Hole("AUTHORIZATION"))
    assert header_value("X-API-Key", "abc") == (Hole("X_API_KEY"),)
    assert header_value("Mcp-Session-Id", "abc") == ("abc",)
    assert url("https://u:p@h/p?api_key=1&x=2") == (
        "https://",
        Hole("USERINFO"),
        "@h/p?api_key=",
        Hole("API_KEY"),
        "&x=2",
    )
    quoted = url("https://u:p'q@h/?api_key=abc'12345678&x='1'#access_token='a\"b'")
    assert [part for part in quoted if isinstance(part, str)] == ["https://", "@h/?api_key=", "&x='1'#access_token="]
    for word in ("https://h/?api_key=a'12345678", '--api-key=abc"12345678'):
        assert "12345678" not in plain(words([word])[0])
    assert words(["--api-key='abc12345678'"]) == [("--api-key='", Hole("API_KEY"), "'")]
    made = words(["x", "--token", "***", "--api-key=abc", "-c", "A_SECRET=x run", "***"])
    assert holes(made) == ["TOKEN", "API_KEY", "A_SECRET", "SECRET"]
    assert made[4:6] == [("-c",), ("A_SECRET=", Hole("A_SECRET"), " run")]


def test_secrets_in_bodies_that_are_no_messages_are_masked() -> None:
    assert form(b"grant_type=x&code=abc&client_secret=d%3D&a=1") == b"grant_type=x&code=***&client_secret=***&a=1"
    made = json_object(b'{"client_id":"x", "client_secret" : "a\\"b", "n":1, "refresh_token":"t"}')
    assert made == b'{"client_id":"x", "client_secret" : "***", "n":1, "refresh_token":"***"}'


def test_what_is_no_message_cannot_be_sent_by_a_program() -> None:
    with pytest.raises(UsageError):
        python(Order("x", "bare", b"a=b"))


@pytest.mark.parametrize("to", [{}, {"url_to": "http://h/mcp"}, {"url_to": "http://h/sse"}, {"command": ("a b", "c")}])
def test_whatever_was_recorded_is_printed_safely_and_can_be_read(to: dict[str, Any], tmp_path: Path) -> None:
    hostile = save(tmp_path, "hostile.mcpcap", http_sessions.hostile(f"{EVIL}\x1b]0;x\x07".replace("\n", "")))
    odd = save(tmp_path, "odd.mcpcap", http_sessions.records(http_sessions.TROUBLE), transport="http")
    commands: list[str] = []
    for file in (hostile, odd, *sorted(FOLDER.glob("*.mcpcap"))):
        script = read_script(open_capture(str(file)))
        picks = [Picked(talk, one, one.cue, one.cue.http) for talk in script.talks for one in talk.scenes if one.cue]
        picks += [Picked(None, None, None, web.http, web) for web in script.webs if web.http.request and not web.scenes]
        for picked in picks:
            for printer in (curl, python):
                with suppress(UsageError):
                    text = printer(order_of(picked, script, file.name, **to))
                    assert all(line.isprintable() for line in text.splitlines()), (file, text)
                    compile("" if printer is curl else text, "printed", "exec")
                    commands += [text] if printer is curl else []
    assert len(commands) > 5 or "command" in to
    done = subprocess.run(["sh", "-n"], input="".join(commands).encode(), capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
