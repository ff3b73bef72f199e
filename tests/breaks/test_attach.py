"""`mcpsniff attach` without a prompt: what it lists, and what its options do."""

import json
import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import pytest

from mcpsniff.cli import attach_link
from mcpsniff.cli.attach_link import EndedError, Link, RefusedError, attached
from mcpsniff.cli.attach_orders import answer_of
from mcpsniff.errors import UsageError
from mcpsniff.hooks.editor import BACK, CHANGED
from mcpsniff.proxy.breaks import peer, places, service
from tests.breaks.desks import CALL, NOTE, Session, call, comes
from tests.cli.running import Ran, run
from tests.proxy.wrapped import wait_for

type Make = Callable[..., Session]
PID = str(os.getpid())


def attach(*words: str, **env: str) -> Ran:
    return run("attach", PID, *words, env=env)


def test_list_show_and_decide(session: Make) -> None:
    one = session("method:tools/call", "kind:notification")
    messages = [one.held(call(number, text=f"{number}\x1b[2J")) for number in (1, 2, 3, 4)]
    listed = attach("--list")
    assert (listed.status, listed.err) == (0, "")
    rows = listed.out.splitlines()
    assert len(rows) == 4
    assert rows[0].split()[:4] == ["1", "→", "tools/call", "add"]
    shown = attach("--show", "2")
    assert '"text": "2\\u001b[2J"' in shown.out
    facts = [json.loads(line) for line in attach("--list", "--json", "--show", "1").out.splitlines()]
    assert [one["held"] for one in facts] == [1, 2, 3, 4, 1]
    assert json.loads(facts[4]["text"]) == json.loads(call(1, text="1\x1b[2J"))
    done = attach("--pass", "1", "--drop", "2", "--answer", "3", '{"content": []}', "--refuse", "4", "not today")
    assert done == Ran(0, "", "")
    edits = [message.ended() for message in messages]
    assert [edit is not None and edit.passes for edit in edits] == [True, False, False, False]
    payloads = [json.loads(out.data) for edit in edits[2:] if edit is not None for out in edit.leaving]
    assert payloads == [
        {"jsonrpc": "2.0", "id": 3, "result": {"content": []}},
        {"jsonrpc": "2.0", "id": 4, "error": {"code": -32000, "message": "not today"}},
    ]


def test_what_is_not_held_is_said_and_the_rest_is_done(session: Make) -> None:
    one = session("method:tools/call")
    message = one.held()
    done = attach("--drop", "7", "--pass", "1", "--pass", "x")
    assert (done.status, done.err) == (2, "mcpsniff: --pass takes the number of a message, or all, not x\n")
    done = attach("--drop", "7", "--pass", "1")
    assert (done.status, done.err) == (1, "mcpsniff: 7 is not held, or not any more\n")
    message.ended()
    assert attach("--list").err == "mcpsniff: nothing is held\n"
    assert attach("--wait", "0.01", "--pass", "all") == Ran(1, "", "mcpsniff: nothing was held\n")
    assert attach("--show", "1").status == 1


def test_a_session_that_does_not_run_yet_is_waited_for(session: Make) -> None:
    assert attach("--wait", "0.01", "--list").status == attach("--list").status == 3
    done: list[Ran] = []
    waiting = Thread(target=lambda: done.append(attach("--wait", "60", "--list")))
    waiting.start()
    waiting.join(0.5)
    session("method:tools/call").held()
    waiting.join(60)
    assert (done[0].status, "tools/call" in done[0].out) == (0, True)


def test_only_a_request_can_be_answered(session: Make) -> None:
    one = session("kind:notification")
    message = one.held(NOTE)
    done = attach("--answer", "1", "{}")
    assert (done.status, done.err) == (1, "mcpsniff: only a request can be answered, and this is a notification\n")
    assert attach("--wait", "60", "--pass", "all").status == 0
    message.ended()


def test_the_prompt_needs_a_terminal(session: Make) -> None:
    session("method:tools/call")
    done = attach()
    assert (done.status, done.out) == (2, "")
    assert "the prompt needs a terminal; --list, --pass and the other options do not" in done.err
    assert attach("--json").status == 2


def test_a_large_message(session: Make, tmp_path: Path) -> None:
    one = session("method:tools/call")
    raw = call(1, text="x" * 5_000_000, a=1.0)
    message = one.held(raw)
    assert len(attach("--show", "1").out) > 5_000_000
    assert attach("--edit", "1", EDITOR=script(tmp_path, 'sed -i.b "s/1.0/2.0/" "$1"'), VISUAL="") == Ran(0, "", "")
    edit = message.ended()
    assert edit is not None
    assert edit.leaving[0].data == raw.replace(b"1.0", b"2.0")


def test_off_and_on(session: Make) -> None:
    one = session("method:tools/call")
    messages = [one.held(), one.held()]
    assert attach("--off").status == 0
    for message in messages:
        message.ended()
    assert one.passing().ended() is None
    assert "the break points are off" in attach("--list").err
    assert attach("--on").status == 0
    message = one.held()
    assert attach("--pass", "all").status == 0
    message.ended()
    assert attach("--on", "--off").status == 2


def script(folder: Path, text: str) -> str:
    """An editor."""
    path = folder / "editor"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o700)
    return str(path)


def test_edit(session: Make, tmp_path: Path) -> None:
    one = session("method:tools/call")
    message = one.held()
    editor = script(tmp_path, 'stat -c %a "$1" 2>/dev/null || stat -f %Lp "$1"; sed -i.b s/1.0/2.50/ "$1"')
    done = attach("--edit", "1", EDITOR=editor, VISUAL="")
    assert (done.status, done.err) == (0, "600\n")
    edit = message.ended()
    assert edit is not None
    (out,) = edit.leaving
    assert (out.what, out.data) == (CHANGED, CALL.replace(b"1.0", b"2.50"))


@pytest.mark.parametrize(
    ("text", "status", "said"),
    [
        (":", 1, "nothing was changed: 1 is still held"),
        ("exit 3", 2, "ended with status 3"),
        ('printf "{" > "$1"', 2, "what was edited is not JSON: line 1, column 2"),
        ('printf "\\377" > "$1"', 2, "line 1 is not UTF-8 (byte 0xff)"),
    ],
)
def test_edits_that_come_to_nothing(session: Make, tmp_path: Path, text: str, status: int, said: str) -> None:
    one = session("method:tools/call")
    message = one.held()
    done = attach("--edit", "1", EDITOR=script(tmp_path, text), VISUAL="", TMPDIR=str(tmp_path))
    assert done.status == status
    assert said in done.err
    assert message.is_waiting
    kept = [line.rpartition(" ")[2] for line in done.err.splitlines() if "what was edited is kept in" in line]
    assert [str(path) for path in tmp_path.glob("mcpsniff-held-*")] == kept
    assert bool(kept) == ("printf" in text)


def test_the_message_that_goes_while_it_is_edited(session: Make, tmp_path: Path) -> None:
    one = session("method:tools/call")
    message = one.held()
    words = f'touch {tmp_path}/begun; while [ ! -e {tmp_path}/done ]; do sleep 0.05; done; echo \'{{"a":1}}\' > "$1"'
    done: list[Ran] = []
    thread = Thread(
        target=lambda: done.append(attach("--edit", "1", EDITOR=script(tmp_path, words), TMPDIR=str(tmp_path)))
    )
    thread.start()
    assert wait_for((tmp_path / "begun").exists)
    one.points.desk.decide(1, {"do": "pass"})
    message.ended()
    (tmp_path / "done").touch()
    thread.join(60)
    assert done[0].status == 1
    assert "1 is not held, or not any more" in done[0].err
    assert "what was edited is kept in" in done[0].err


def test_only_the_user_can_attach(session: Make, folder: Path) -> None:
    one = session("method:tools/call")
    assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700
    assert stat.S_IMODE(os.stat(one.path).st_mode) == 0o600
    assert len(os.fsencode(one.path)) < 100
    one.end()
    assert list(folder.iterdir()) == []


def test_who_is_at_the_other_end_is_asked_of_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert peer.is_ourselves(ours)
        with monkeypatch.context() as patched:
            patched.setattr(os, "geteuid", lambda: 4711)
            assert not peer.is_ourselves(ours)


def test_nobody_else_is_let_in(session: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    one = session("method:tools/call")
    with monkeypatch.context() as patched:
        patched.setattr(service, "is_ourselves", lambda _connection: False)
        with pytest.raises(EndedError, match="the session has ended"):
            Link(one.path)
    monkeypatch.setattr(attach_link, "is_ourselves", lambda _connection: False)
    with pytest.raises(EndedError, match="another user's"):
        Link(one.path)


def test_which_session_is_meant(session: Make, folder: Path) -> None:
    with pytest.raises(EndedError, match="no session with break points is running"):
        attached(None)
    session("method:tools/call", labels=["weather", "weather-2"])
    link = attached(None)
    assert link.session["labels"] == ["weather", "weather-2"]
    assert link.session["breaks"] == ["method:tools/call"]
    for what in ("weather", "weather-2", "wea", "ther", PID):
        attached(what).close()
    with pytest.raises(EndedError, match=rf"is called time; there is {PID} \(weather, weather-2\)"):
        attached("time")
    os.symlink(folder / f"{PID}.sock", folder / "1.sock")
    with pytest.raises(UsageError, match="there are 2 sessions with break points"):
        attached(None)
    link.close()


def test_a_shell_completes_harmless_labels(session: Make) -> None:
    session("method:tools/call", labels=["weather", "$(touch x)", "white"])
    words = {"COMP_WORDS": "mcpsniff attach w", "COMP_CWORD": "2", "_MCPSNIFF_COMPLETE": "bash_complete"}
    assert run(env=words).out.split() == ["plain,weather", "plain,white"]


def test_what_is_left_behind_is_removed(session: Make, folder: Path) -> None:
    folder.mkdir(0o700)
    dead, path = places.listening()
    dead.close()
    os.rename(path, folder / "999999999.sock")
    (folder / ".999999999.new").touch()
    (folder / "else").touch()
    one = session("method:tools/call")
    assert sorted(os.listdir(folder)) == sorted([f"{PID}.sock", "else"])
    assert places.places() == [(os.getpid(), one.path)]


@pytest.mark.parametrize("how", ["open", "link", "file", "long"])
def test_a_folder_that_is_not_private_is_no_place(
    session: Make, folder: Path, tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if how == "open":
        folder.mkdir()
        folder.chmod(0o755)
    elif how == "link":
        folder.symlink_to(tmp_path)
    elif how == "file":
        folder.touch()
    else:
        monkeypatch.setattr(places, "folders", lambda: [str(tmp_path / ("x" * 100))])
    with pytest.raises(UsageError, match="--break needs a private folder for its socket"):
        session("method:tools/call")
    assert places.places() == []


def test_several_are_attached_and_the_first_to_decide_counts(session: Make) -> None:
    one = session("method:tools/call")
    links = [attached(PID) for _ in range(3)]
    message = one.held()
    for link in links:
        assert comes(link, lambda link=link: link.held)
    links[1].order("answer", 1, result={})
    edit = message.ended()
    assert edit is not None
    assert edit.leaving[0].what == BACK
    for link in links:
        assert comes(link, lambda link=link: link.gone)
        assert [(held.number, how) for held, how in link.gone] == [(1, "answered")]
    assert one.said == []
    one.end()
    for link in links:
        assert comes(link, lambda link=link: link.is_over)
        link.close()


def test_a_client_that_says_what_is_no_order_is_told_so(session: Make) -> None:
    session("method:tools/call")
    link = attached(PID)
    link._connection.sendall(b"nonsense\n[1]\n" + b"[" * 100_000 + b"\n")
    for order in ({"do": "pass", "n": "1"}, {"do": "pass", "n": True}, {"do": "pass"}, {}, {"do": "show", "n": 9}):
        with pytest.raises(RefusedError, match=r"no number|not held"):
            link.order(order.get("do", ""), order.get("n"))  # type: ignore[arg-type]
    link.close()


@pytest.mark.parametrize(
    ("text", "order"),
    [
        ('{"result": {"a": 1}}', {"result": {"a": 1}}),
        ('{"error": {"code": 1}}', {"error": {"code": 1}}),
        ('{"error": 1, "x": 2}', {"result": {"error": 1, "x": 2}}),
        ("{}", {"result": {}}),
        ("12345678901234567890123", {"result": 12345678901234567890123}),
    ],
)
def test_answers(text: str, order: dict[str, object], tmp_path: Path) -> None:
    assert answer_of(text) == order
    (tmp_path / "answer.json").write_text(text)
    assert answer_of(f"@{tmp_path}/answer.json") == order


@pytest.mark.parametrize("text", ["", "{", "NaN", "[" * 100_000, "@/nonexistent/file"])
def test_answers_that_are_none(text: str) -> None:
    with pytest.raises(UsageError):
        answer_of(text)
