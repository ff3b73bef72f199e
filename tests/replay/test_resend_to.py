"""`mcpsniff resend --to`: one request again, to a live server on each transport, with what it needs before it."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mcpsniff.capture.reader import open_capture
from mcpsniff.capture.records import CLOSE, OPEN, Record
from mcpsniff.errors import UsageError
from mcpsniff.protocol.message import Message
from mcpsniff.replay.reading import read_script
from mcpsniff.replay.resend.edit import fault, laid_out, on_one_line
from mcpsniff.replay.resend.pick import pick
from mcpsniff.replay.resend.talk import least_talk
from tests.capture.capture_files import save
from tests.cli.running import Ran, environment, on_terminal, run
from tests.dialogue import play
from tests.replay.little_server import SECRET, Served, serving

SERVER = Path(__file__).with_name("little_server.py")
COMMAND = ("--to", "--", sys.executable, str(SERVER))
EVIL = "\u202eevil"


def call(number: int, name: str, **arguments: Any) -> str:
    params = {"name": name, "arguments": arguments}
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})


def told(number: int, text: str) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": number, "result": {"content": [{"type": "text", "text": text}]}})


ADDING = '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"adding"}}'
SCHEMA = '"requestedSchema":{"type":"object","properties":{}}'
QUESTION = f'{{"jsonrpc":"2.0","id":5,"method":"elicitation/create","params":{{"message":"Who?",{SCHEMA}}}}}'
REPLY = '{"jsonrpc":"2.0","id":5,"result":{"action":"accept","content":{"who":"me"}}}'
ANSWERED = '{"action": "accept", "content": {"who": "me"}}'
LIST = '{"jsonrpc":"2.0","id":8,"method":"tools/list","params":{"cursor":"p2"}}'

PIPES = f"""\
@open 2025-11-25
C> {call(1, "add", a=20, b=22)}
S> {ADDING}
S> {told(1, "42")}
C> {call(2, "ask")}
S> {QUESTION}
C> {REPLY}
S> {told(2, ANSWERED)}
C> {call(3, "drop", what="it")}
S> {told(3, "dropped")}
C> [{call(4, "add", a=1, b=2)}]
S> [{ADDING},{told(4, "3")}]
C> {call(6, "add", a=3, b=4)}
S> {ADDING}
S> {told(6, "8")}
"""
STREAMABLE = f"""\
@http
@open 2025-11-25
C> POST /guarded
    Authorization: Bearer **********
    {call(1, "add", a=20, b=22)}
S> 200 STREAM
S> EVENT {ADDING}
S> EVENT {told(1, "42")}
S> END
"""
LEGACY = f"""\
@http
@sse
C> POST /messages?sessionId=1 {call(1, "add", a=20, b=22)}
S> 202
S9> EVENT {ADDING}
S9> EVENT {told(1, "42")}
"""


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with serving() as one:
        yield one


def capture(folder: Path, dialogue: str = PIPES, **header: Any) -> tuple[Path, list[str]]:
    """A capture, and the numbers of the client's calls in it."""
    played = play(dialogue)
    path = save(folder, "x.mcpcap", played.records, **header)
    return path, [str(one.n) for one in played.events if isinstance(one, Message) and one.method == "tools/call"]


def resent(file: Path, number: str, *options: str, status: int = 0, env: dict[str, str] | None = None) -> Ran:
    """Send a request, and mind the exit status; nothing that is shown may act on a terminal."""
    at = options.index("--to") if "--to" in options else len(options)
    done = run("resend", str(file), number, *options[:at], *(options[at:] or COMMAND), env=env)
    assert done.status == status, done
    assert all(line.isprintable() for line in (done.out + done.err).splitlines())
    assert "Traceback" not in done.err
    return done


def test_the_same_answer_over_each_transport_whichever_was_recorded(served: Served, tmp_path: Path) -> None:
    given = ["--header", f"Authorization: Bearer {SECRET}"]
    for dialogue, to in (
        (PIPES, COMMAND),
        (PIPES, ("--to", f"{served.origin}/mcp")),
        (PIPES, ("--to", f"{served.origin}/sse")),
        (STREAMABLE, COMMAND),
        (STREAMABLE, (*given, "--to", f"{served.origin}/guarded")),
        (LEGACY, ("--to", f"{served.origin}/sse")),
        (LEGACY, ("--to", f"{served.origin}/mcp")),
    ):
        file, calls = capture(tmp_path, dialogue)
        done = resent(file, calls[0], *to)
        assert '"text": "42"' in done.out, (dialogue, to)
        assert "with it came 1 notifications/message" in done.out
        assert "same" in done.out.splitlines()[-1]


def test_credentials_of_the_capture_are_never_sent(served: Served, tmp_path: Path) -> None:
    file, calls = capture(tmp_path, STREAMABLE)
    done = resent(file, calls[0], "--to", f"{served.origin}/guarded", status=1)
    assert "sent authorization, which is not sent again: --header gives it" in done.err
    assert "initialize" in done.out.splitlines()[0]
    assert "unauthorized" in done.out
    assert "--allow-writes" not in done.out, "that would not help"
    assert "authorization" not in served.heads[-1]


def test_questions_of_the_server_are_answered_as_recorded(tmp_path: Path) -> None:
    file, calls = capture(tmp_path)
    done = resent(file, calls[1])
    assert '"who": "me"' in done.out


def test_a_tool_that_may_change_something_is_called_only_when_allowed(served: Served, tmp_path: Path) -> None:
    file, calls = capture(tmp_path)
    before = len(served.asked)
    done = resent(file, calls[2], "--to", f"{served.origin}/mcp", status=1)
    assert "not called: its tool is declared destructive" in done.out
    assert "--allow-writes" in done.out
    assert "tools/call" not in [asked.get("method") for asked in served.asked[before:]]
    done = resent(file, calls[2], "--allow-writes", "--to", f"{served.origin}/mcp", status=1)
    assert served.asked[-1]["params"]["name"] == "drop"
    assert '"dropped" → ' in done.out or "dropped" in done.out


def test_an_element_of_a_batch_goes_alone_and_differences_are_shown(tmp_path: Path) -> None:
    file, calls = capture(tmp_path)
    assert "same" in resent(file, calls[3]).out
    done = resent(file, calls[4], status=1)
    assert "1 difference" in done.out
    assert '~ result.content[0].text: "8" → "7"' in done.out


def test_a_path_that_is_ignored_makes_no_difference(tmp_path: Path) -> None:
    file, calls = capture(tmp_path)
    assert "same" in resent(file, calls[4], "--ignore", "result.content[*].text").out


def editor(folder: Path, code: str) -> dict[str, str]:
    """An editor that changes the text ``t`` of the file so; what is kept of a draft lies in ``folder``/kept."""
    script = folder / "editor.py"
    script.write_text(
        "import sys, time, os, pathlib\nfile = pathlib.Path(sys.argv[1])\nt = file.read_bytes().decode()\n"
        f"{code}\nfile.write_bytes(t if isinstance(t, bytes) else t.encode())\nlater = time.time() + 5\n"
        "os.utime(file, (later, later))\n"
    )
    (folder / "kept").mkdir(exist_ok=True)
    return {"VISUAL": f"{sys.executable} {script}", "EDITOR": "false", "TMPDIR": str(folder / "kept")}


def kept(folder: Path) -> list[str]:
    """The drafts that are left, which are removed now."""
    files = list((folder / "kept").iterdir())
    assert all(file.stat().st_mode & 0o777 == 0o600 for file in files)
    texts = [file.read_bytes().decode(errors="replace") for file in files]
    for file in files:
        file.unlink()
    return texts


def test_a_request_can_be_changed_first_and_is_then_not_compared(served: Served, tmp_path: Path) -> None:
    file, calls = capture(tmp_path)
    to = ("--edit", "--to", f"{served.origin}/mcp")
    done = resent(file, calls[0], *to, env=editor(tmp_path, "t = t.replace(': 20', ': 1.5')"))
    assert served.asked[-1]["params"]["arguments"] == {"a": 1.5, "b": 22}
    assert '"23.5"' in done.out
    assert "not compared: it was edited" in done.out
    assert kept(tmp_path) == []
    done = run("resend", str(file), calls[0], "--as", "curl", *to, env=editor(tmp_path, "print('drawn', flush=True)"))
    assert "drawn" not in done.out, "that may be a file"
    assert "drawn" in done.err
    done = resent(file, calls[0], *to, status=1, env=editor(tmp_path, "t = t.replace('tools/call', 'no/such')"))
    assert "no no/such here" in done.out
    assert '"no/such"' in kept(tmp_path)[0]


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("t = t[:-3] + ',,}'", "what was edited is not JSON: line "),
        ("t = t.replace('\"id\"', '\"no\"')", "what was edited is a notification, not a request"),
        ("t = b'{\\n\\xff'", "what was edited is not JSON: line 2 is not UTF-8 (byte 0xff)"),
    ],
)
def test_what_was_edited_and_cannot_be_sent_is_kept(code: str, said: str, tmp_path: Path) -> None:
    file, calls = capture(tmp_path)
    done = resent(file, calls[0], "--edit", status=2, env=editor(tmp_path, code))
    assert said in done.err
    assert f"what was edited is kept in {tmp_path / 'kept'}/mcpsniff-request-" in done.err
    assert len(kept(tmp_path)) == 1


def test_on_a_terminal_what_is_no_request_can_be_edited_again(tmp_path: Path) -> None:
    file, calls = capture(tmp_path)
    code = "t = t.replace(': 20', ': 30') if t.endswith('!') else t + '!'"
    repaired = f"{code}\nt = t.rstrip('!') if ': 30' in t else t"
    words = ["resend", str(file), calls[0], "--edit", *COMMAND]
    done = on_terminal(*words, env=editor(tmp_path, repaired), typed=b"\n")
    assert "edit it again? [Y/n]" in done.out
    assert (done.status, '"52"' in done.out) == (0, True), done.out
    done = on_terminal(*words, env=editor(tmp_path, "t += '!'"), typed=b"n\n")
    assert done.status != 0
    assert "what was edited is kept in" in done.out


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("true", "left without saving: nothing was sent"),
        ("'", "$VISUAL is no command: No closing quotation"),
        ("rm", "what was edited cannot be read: No such file or directory"),
        ("false", "ended with status 1: nothing was sent"),
        ("/no/such/editor", "the editor /no/such/editor cannot be run: No such file"),
    ],
)
def test_an_editor_that_is_none_is_told_in_a_sentence(command: str, said: str, tmp_path: Path) -> None:
    file, calls = capture(tmp_path)
    env = {**editor(tmp_path, ""), "VISUAL": command}
    assert said in resent(file, calls[0], "--edit", status=2, env=env).err
    assert kept(tmp_path) == []


def test_what_would_not_be_called_is_not_edited_first_or_else_kept(tmp_path: Path) -> None:
    tools = '{"tools":[{"name":"drop","annotations":{"destructiveHint":true}}]}'
    listed = f'C> {{"jsonrpc":"2.0","id":9,"method":"tools/list"}}\nS> {{"jsonrpc":"2.0","id":9,"result":{tools}}}\n'
    file, calls = capture(tmp_path, PIPES + listed)
    env = editor(tmp_path, "open('/dev/stderr', 'w').write('edited')")
    done = resent(file, calls[2], "--edit", status=2, env=env)
    assert "its tool is declared destructive in the capture; --allow-writes calls it" in done.err
    assert "edited" not in done.err.replace("edit,", "")
    file, calls = capture(tmp_path)
    done = resent(file, calls[2], "--edit", status=1, env=editor(tmp_path, "t = t.replace('it', 'that')"))
    assert "not called: its tool is declared destructive" in done.out
    assert "what was edited is kept in" in done.err
    assert '"that"' in kept(tmp_path)[0]
    done = resent(file, calls[0], "--edit", "--to", "--", "no-such-command", status=3, env=editor(tmp_path, "t += ' '"))
    assert len(kept(tmp_path)) == 1


def test_without_a_terminal_no_editor_is_looked_for(tmp_path: Path) -> None:
    file, calls = capture(tmp_path)
    env = {**editor(tmp_path, ""), "VISUAL": "", "EDITOR": ""}
    done = resent(file, calls[0], "--edit", status=2, env=env)
    assert "--edit needs a terminal, or an editor in $VISUAL or $EDITOR" in done.err
    assert kept(tmp_path) == []
    (tmp_path / "vim").write_text('#!/bin/sh\nsed -i.bak \'s/: 20/: 30/\' "$1"\nrm "$1.bak"\n')
    (tmp_path / "vim").chmod(0o700)
    (tmp_path / "sensible-editor").symlink_to("vim")
    env["PATH"] = f"{tmp_path}:{os.environ['PATH']}"
    assert '"52"' in on_terminal("resend", str(file), calls[0], "--edit", *COMMAND, env=env).out


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("is_typed", [False, True])
def test_a_signal_ends_the_editor_and_leaves_a_file_only_if_something_was_typed(
    number: signal.Signals, is_typed: bool, tmp_path: Path
) -> None:
    file, calls = capture(tmp_path)
    pid = tmp_path / "pid"
    code = "file.write_text(t + '!')\n" if is_typed else ""
    code += f"pathlib.Path({str(pid)!r}).write_text(str(os.getpid()))"
    env = environment(
        **editor(
            tmp_path, f"{code}\nos.kill(int(os.environ.get('MCPSNIFF', os.getppid())), {int(number)})\ntime.sleep(60)"
        )
    )
    words = [sys.executable, "-m", "mcpsniff", "resend", str(file), calls[0], "--edit", *COMMAND]
    if is_typed:  # as sensible-editor does: a script that starts the editor
        script = tmp_path / "sensible"
        script.write_text(f'#!/bin/sh\nMCPSNIFF=$PPID {env["VISUAL"]} "$1"\nexit 0\n')
        script.chmod(0o700)
        env["VISUAL"] = str(script)
    done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=30)
    assert done.returncode == -number, done.stderr
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)
    assert ("what was edited is kept in" in done.stderr) is is_typed
    assert len(kept(tmp_path)) == is_typed


def test_an_edit_that_brings_a_failure_has_exit_status_1(tmp_path: Path) -> None:
    file, calls = capture(tmp_path)
    server = tmp_path / "failing.py"
    text = SERVER.read_text()
    fine = '"text": str(total)}]'
    assert fine in text
    server.write_text(text.replace(fine, f'{fine}, "isError": True'))
    to = ("--edit", "--to", "--", sys.executable, str(server))
    done = resent(file, calls[0], *to, status=1, env=editor(tmp_path, "t = t.replace(': 20', ': 30')"))
    assert '"52"' in done.out
    assert len(kept(tmp_path)) == 1


def test_an_edit_that_changed_nothing_is_compared(tmp_path: Path) -> None:
    file, calls = capture(tmp_path)
    done = resent(file, calls[4], "--edit", status=1, env=editor(tmp_path, "t += ' '"))
    assert "nothing was changed" in done.err
    assert '~ result.content[0].text: "8" → "7"' in done.out
    assert len(kept(tmp_path)) == 1
    done = resent(file, calls[0], "--edit", env=editor(tmp_path, ""))
    assert "same" in done.out.splitlines()[-1]


def test_a_server_that_cannot_be_reached_is_named_with_the_reason(tmp_path: Path) -> None:
    file, calls = capture(tmp_path)
    assert "no-such-command" in resent(file, calls[0], "--to", "--", "no-such-command", status=3).err
    with socket.create_server(("127.0.0.1", 0)) as taken:
        nobody = f"127.0.0.1:{taken.getsockname()[1]}"
    assert nobody in resent(file, calls[0], "--to", f"http://{nobody}/mcp", status=3).err


def test_a_server_that_does_not_answer_is_waited_for_no_longer_than_asked(tmp_path: Path) -> None:
    file, calls = capture(tmp_path)
    silent = (sys.executable, "-c", "import sys; sys.stdin.read()")
    done = resent(file, calls[0], "--timeout", "0.2", "--to", "--", *silent, status=1)
    assert "no answer within 0.2 s" in done.out


def test_a_server_that_dies_is_told(tmp_path: Path) -> None:
    file, calls = capture(tmp_path)
    done = resent(file, calls[0], "--to", "--", sys.executable, "-c", "exit(3)", status=1)
    assert "the server" in done.out


def test_a_capture_without_a_handshake_gets_one_of_our_own(tmp_path: Path) -> None:
    file, calls = capture(tmp_path, f"C> {call(1, 'add', a=20, b=22)}\nS> {ADDING}\nS> {told(1, '42')}\n")
    done = resent(file, calls[0])
    assert "the recording has no handshake" in done.out
    assert '"text": "42"' in done.out


def test_what_was_redacted_is_not_sent_unless_it_is_wanted(tmp_path: Path) -> None:
    """Other requests of that capture are; and an edit may put a value where one was removed."""
    dialogue = f"@open 2025-11-25\nC> {call(1, 'add', a=20, b=22)}\nS> {told(1, '42')}\n"
    secret = call(2, "add", a=1, b=2, password="Sesame-4711")
    file, calls = capture(tmp_path, f"{dialogue}C> {secret}\nS> {told(2, '3')}\n")
    hidden = tmp_path / "hidden.mcpcap"
    assert run("redact", str(file), "-o", str(hidden)).status == 0
    assert '"42"' in resent(hidden, calls[0]).out
    done = resent(hidden, calls[1], status=3)
    assert "--allow-redacted" in done.err
    assert f"#{calls[1]} tools/call: redacted password (params.arguments.password)" in done.err
    assert '"3"' in resent(hidden, calls[1], "--allow-redacted").out
    done = resent(hidden, calls[1], "--edit", env=editor(tmp_path, "t = t.replace('redacted-password-1', 'open')"))
    assert '"3"' in done.out
    done = resent(hidden, calls[1], "--edit", status=3, env=editor(tmp_path, "t += ' '"))
    assert "in what was edited: redacted-password-1" in done.err
    assert len(kept(tmp_path)) == 1
    for form in ("curl", "python"):
        options = ["--as", form, *(["--to", "http://127.0.0.1:1/mcp"] if form == "curl" else [])]
        done = run("resend", str(hidden), calls[1], *options)
        assert "names stand in their place: redacted-password-1" in done.err
        assert "removed" not in run("resend", str(hidden), calls[0], *options).err


def test_a_request_whose_id_is_null_and_that_nobody_answers_has_no_answer(tmp_path: Path) -> None:
    played = play('@open 2025-11-25\nC> {"jsonrpc":"2.0","id":null,"method":"ping"}\n')
    file = save(tmp_path, "x.mcpcap", played.records)
    number = next(str(one.n) for one in played.events if isinstance(one, Message) and one.method == "ping")
    code = """import json, sys
for line in sys.stdin:
    if '"initialize"' in line:
        info = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "x", "version": "1"}}
        print(json.dumps({"jsonrpc": "2.0", "id": json.loads(line)["id"], "result": info}), flush=True)
"""
    done = resent(file, number, "--timeout", "0.2", "--to", "--", sys.executable, "-c", code, status=1)
    assert "no answer within 0.2 s" in done.out


def test_the_newest_capture_is_one_in_which_something_was_asked(tmp_path: Path) -> None:
    file, calls = capture(tmp_path, started="2026-11-01T10:00:00Z", label="x")
    dead = [
        Record(0, OPEN, 1, {"kind": "stdout", "dir": "s2c", "conn": 0}),
        Record(9, CLOSE, 1, {"how": "exit", "status": 1}),
    ]
    save(tmp_path, "y.mcpcap", dead, started="2026-11-02T10:00:00Z", label="x")
    for words in (["resend", calls[0], "--as", "python"], ["replay", "--serve", "stdio"]):
        done = run(words[0], "--dir", str(tmp_path), *words[1:])
        assert done.status == 0, done
        assert f"{file}, the newest of 2 but for a newer one, where no client said anything" in done.err
    assert "resending from" in run("resend", "--dir", str(tmp_path), "x", calls[0], *COMMAND).err


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "1e300", "0", "-1", "x", ""])
@pytest.mark.parametrize("command", [["resend", "x", "1"], ["replay", "x"]])
def test_a_time_that_is_none_is_refused(command: list[str], value: str) -> None:
    done = run(*command, "--timeout", value, "--to", "http://127.0.0.1:1/mcp")
    assert done.status == 2
    assert f"it needs a number of seconds from 0.001 to 1,000,000, not '{value}'" in done.err
    done = run("replay", "x", "--timing", f"x{value}", "--serve", "stdio")
    assert (done.status, "--timing wants original, none, or a speed" in done.err) == (2, True)


def test_hostile_answers_are_shown_and_not_obeyed(tmp_path: Path) -> None:
    echo = f"@open 2025-11-25\nC> {call(1, 'drop', text=EVIL)}\nS> {told(1, EVIL)}\n"
    file, calls = capture(tmp_path, echo)
    assert "\\u202e" in resent(file, calls[0], "--allow-writes", status=1).out


@pytest.mark.parametrize(
    ("dialogue", "number", "options", "said"),
    [
        (PIPES, 7, (), "#7 is a notification"),
        (PIPES, 17, (), "which the server asked"),
        (PIPES, 9, ("--header", "a: b"), "--header is for a server on HTTP"),
        (PIPES, 9, ("-o", "x"), "-o is for --as"),
        (PIPES, 9, ("--as", "curl", "--timeout", "3"), "--timeout is for sending"),
        (PIPES, 9, ("--to", "example.com"), "--to wants a URL"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence(
    dialogue: str, number: int, options: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    file, _ = capture(tmp_path, dialogue)
    done = resent(file, str(number), *options, status=2)
    assert said in done.err
    assert len(done.err.splitlines()) == 1


def test_without_a_server_it_is_said_what_there_is(tmp_path: Path) -> None:
    file, calls = capture(tmp_path)
    done = run("resend", str(file), calls[0])
    assert (done.status, done.out) == (2, "")
    assert "--to URL or --to -- COMMAND; or --as" in done.err


def test_what_is_handed_back_is_asked_for_before(tmp_path: Path) -> None:
    """A cursor of the live server stands in the place of the recorded one; other requests are not made."""
    pages = f"""\
@open 2025-11-25
C> {{"jsonrpc":"2.0","id":7,"method":"tools/list"}}
S> {{"jsonrpc":"2.0","id":7,"result":{{"tools":[],"nextCursor":"p2"}}}}
C> {call(1, "add", a=20, b=22)}
S> {told(1, "42")}
C> {LIST}
S> {{"jsonrpc":"2.0","id":8,"result":{{"tools":[],"nextCursor":"p3"}}}}
C> {LIST.replace("p2", "p3").replace("8", "9")}
S> {{"jsonrpc":"2.0","id":9,"result":{{"tools":[]}}}}
"""
    played = play(pages)
    opened = open_capture(str(save(tmp_path, "x.mcpcap", played.records)))
    opened.keep()
    script = read_script(opened)
    last = [one.n for one in played.events if isinstance(one, Message) and one.method == "tools/list"][-1]
    talk, scene = least_talk(pick(opened, script, last))
    assert [one.method for one in talk.scenes] == ["initialize", "notifications/initialized", *["tools/list"] * 3]
    assert talk.scenes[-1] is scene
    assert [message.method for message in talk.messages if message.direction == "c2s"] == [
        "initialize",
        "notifications/initialized",
        *["tools/list"] * 3,
    ]
    with pytest.raises(UsageError, match="several messages"):
        least_talk(pick(opened, script, last), b"[1,2]")


def test_what_is_edited_keeps_the_spelling_of_every_token() -> None:
    raw = b'\xef\xbb\xbf{"a" : 1.0,"b":[ ],"c":{},"d":[1e2,-0,{"x":"\\u0041 [,]{}:\\" \xc3\xa9"}],"a":null}'
    text = laid_out(raw)
    assert text.splitlines()[:4] == ["{", '  "a": 1.0,', '  "b": [],', '  "c": {},']
    assert '      "x": "\\u0041 [,]{}:\\" é"' in text.splitlines()
    assert on_one_line(text) == raw.removeprefix(b"\xef\xbb\xbf").replace(b" : ", b":").replace(b"[ ]", b"[]")
    assert laid_out(b'{"a": oops}') == '{"a": oops}'
    assert fault('{\n"a": oops}') == "line 2, column 6: Expecting value"
    assert laid_out(b"17") == "17\n"
