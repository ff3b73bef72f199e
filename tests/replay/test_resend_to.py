"""`mcpsniff resend --to`: one request again, to a live server on each transport, with what it needs before it."""

import json
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mcpsniff.capture.reader import open_capture
from mcpsniff.errors import UsageError
from mcpsniff.protocol.message import Message
from mcpsniff.replay.reading import read_script
from mcpsniff.replay.resend.edit import fault, laid_out, on_one_line
from mcpsniff.replay.resend.pick import pick
from mcpsniff.replay.resend.talk import least_talk
from tests.capture.capture_files import save
from tests.cli.running import Ran, run
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
    """An editor that changes the text ``t`` of the file so."""
    script = folder / "editor.py"
    script.write_text(
        "import sys, time, os, pathlib\nfile = pathlib.Path(sys.argv[1])\nt = file.read_text()\n"
        f"{code}\nfile.write_text(t)\nlater = time.time() + 5\nos.utime(file, (later, later))\n"
    )
    return {"VISUAL": f"{sys.executable} {script}", "EDITOR": "false"}


def test_a_request_can_be_changed_first(served: Served, tmp_path: Path) -> None:
    file, calls = capture(tmp_path)
    to = ("--edit", "--to", f"{served.origin}/mcp")
    done = resent(file, calls[0], *to, status=1, env=editor(tmp_path, "t = t.replace(': 20', ': 1.5')"))
    assert served.asked[-1]["params"]["arguments"] == {"a": 1.5, "b": 22}
    assert '"42" → "23.5"' in done.out
    before = len(served.asked)
    done = resent(file, calls[0], *to, status=2, env=editor(tmp_path, "t = t[:-3] + ',,}'"))
    assert "what was edited is not JSON: line " in done.err
    done = resent(file, calls[0], *to, status=2, env=editor(tmp_path, "t = t.replace('\"id\"', '\"no\"')"))
    assert "what was edited is a notification, not a request" in done.err
    done = resent(file, calls[0], *to, status=2, env={"VISUAL": "true"})
    assert "left without saving: nothing was sent" in done.err
    assert len(served.asked) == before


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


def test_a_redacted_capture_is_refused_unless_it_is_wanted(tmp_path: Path) -> None:
    file, calls = capture(tmp_path, redacted={"by": "mcpsniff", "values": 1, "places": 1, "kinds": {}})
    assert "--allow-redacted" in resent(file, calls[0], status=3).err
    assert '"text": "42"' in resent(file, calls[0], "--allow-redacted").out


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
        (PIPES, 9, ("--as", "curl", "--edit"), "--edit is for sending"),
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
