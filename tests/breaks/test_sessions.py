"""Break points in the recorders themselves: what leaves, what is recorded, and what becomes of it at an end."""

import json
import os
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mcpsniff.cli.attach_link import Link, attached
from tests.breaks.desks import call, comes
from tests.proxy.wrapped import Captured, Wrapped, wait_for
from tests.relay.test_pipes_laws import decoded, what_left

SERVER = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") == "notifications/end":
        sys.exit(7)
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {}}), flush=True)
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": message["params"]}), flush=True)
"""
ECHO = [sys.executable, "-c", SERVER]


@contextmanager
def wrapped(folder: Path, *options: str, label: str = "echo") -> Iterator[Wrapped]:
    with Wrapped(folder, ECHO, "--label", label, *options) as running:
        yield running


@contextmanager
def desk_of(running: Wrapped) -> Iterator[Link]:
    """A link to the desk of a wrapper."""

    def probe() -> Link | None:
        try:
            return attached(str(running.process.pid))
        except Exception:
            return None

    link = wait_for(probe)
    assert link is not None
    yield link
    link.close()


def holds(link: Link, number: int) -> bool:
    return comes(link, lambda: number in link.held)


def left(capture: Captured, channel: int) -> bytes:
    """What the records say has left."""
    return what_left(
        [(t, kind, n, decoded(body) if kind == "chunk" else body) for t, kind, n, body in capture.records], channel
    )


def test_a_wrapped_server(tmp_path: Path, folder: Path) -> None:
    asked = [call(number, a=number) + b"\n" for number in range(1, 7)]
    with (
        wrapped(tmp_path, "--break", "tool:add dir:c2s", "--break", "kind:response") as running,
        desk_of(running) as link,
    ):
        assert comes(link, lambda: link.session["labels"] == ["echo"])
        running.send(*asked)
        assert holds(link, 1)
        assert list(link.held) == [1]  # the others wait in order behind it
        changed = asked[0].decode().replace('{"a": 1}', '{"a": 1.50}').rstrip()
        link.order("change", 1, text=changed)
        assert json.loads(running.read_line())["method"] == "notifications/message"  # not held up by what is held
        assert holds(link, 3)
        assert sorted(held.facts["dir"] for held in link.held.values()) == ["c2s", "s2c"]
        by_direction = {held.facts["dir"]: held.number for held in link.held.values()}
        link.order("pass", by_direction["s2c"])
        assert json.loads(running.read_line())["result"]["arguments"] == {"a": 1.5}
        link.order("drop", by_direction["c2s"])
        assert holds(link, 4)
        link.order("answer", 4, result={"a": 1})
        assert json.loads(running.read_line()) == {"jsonrpc": "2.0", "id": 3, "result": {"a": 1}}
        assert holds(link, 5)
        link.order("off")
        said = [json.loads(running.read_line()) for _ in range(6)]
        assert [one["id"] for one in said if "id" in one] == [4, 5, 6]
        status = running.end()
    assert status == 0
    assert not list(folder.iterdir())
    capture = running.capture()
    assert capture.data(0) == b"".join(asked)
    assert left(capture, 0) == changed.encode() + b"\n" + b"".join(asked[3:])
    hand = "by hand at --break tool:add dir:c2s"
    assert [(body["by"], body["why"]) for body in capture.bodies("rewrite", 0)] == [
        ("break", f"changed {hand}"),
        ("break", f"dropped {hand}"),
        ("break", f"answered {hand}"),
    ]
    assert [(body["by"], body["why"]) for body in capture.bodies("rewrite", 1)] == [("break", f"answered {hand}")]
    assert ("break", "passed by hand at --break kind:response") in [
        (body["by"], body["why"]) for body in capture.bodies("hold", 1)
    ]
    assert b"is held at a break point: mcpsniff attach" in running.stderr or b"held at" not in running.stderr


@pytest.mark.parametrize("how", ["client", "server", "term", "timeout", "eof"])
def test_what_is_held_when_it_ends(tmp_path: Path, folder: Path, how: str) -> None:
    expression = "kind:response" if how == "server" else "tool:add dir:c2s"
    options = ["--break-timeout", "0.2"] if how == "timeout" else []
    with (
        wrapped(tmp_path, "--break", expression, "--break", "tool:never", *options) as running,
        desk_of(running) as link,
    ):
        running.send(call(1, a=1) + b"\n")
        if how != "timeout":
            assert holds(link, 1)
        if how == "server":
            running.send(b'{"jsonrpc":"2.0","method":"notifications/end"}\n')
            assert json.loads(running.read_line())["method"] == "notifications/message"
            assert comes(link, lambda: link.gone or link.is_over)
            assert running.wait() == 7
        elif how == "term":
            running.signal(signal.SIGTERM)
            assert running.wait() == 128 + signal.SIGTERM
        elif how == "client":
            running.stdout.close()
            running.stdin.close()
            assert running.wait() in (0, 1, 120, 128 + signal.SIGPIPE)
        elif how == "timeout":
            assert json.loads(running.read_line())["method"] == "notifications/message"
            assert json.loads(running.read_line())["id"] == 1
            assert running.end() == 0
        else:
            running.stdin.close()
            link.order("pass", 1)
            assert json.loads(running.read_line())["method"] == "notifications/message"
            assert json.loads(running.read_line())["id"] == 1
            assert running.wait() == 0
    assert not list(folder.iterdir())
    assert b"mcpsniff: --break tool:never held nothing\n" in running.stderr
    assert how == "client" or b"Traceback" not in running.stderr  # there it is the server's
    if how == "timeout":
        begun, hold = running.capture().bodies("hold", 0)
        assert (begun["start"], begun["us"], begun["why"]) == (0, 0, "at --break tool:add dir:c2s")
        assert hold["why"] == "passed by --break-timeout at --break tool:add dir:c2s"
        assert hold["us"] >= 200_000


def test_a_wrapper_that_is_killed_leaves_a_socket_which_the_next_one_removes(tmp_path: Path, folder: Path) -> None:
    with wrapped(tmp_path, "--break", "tool:add") as running, desk_of(running):
        running.process.kill()
        running.process.wait()
    assert [path.name for path in folder.iterdir()] == [f"{running.process.pid}.sock"]
    with wrapped(tmp_path / "2", "--break", "tool:add") as other:
        with desk_of(other):
            assert [path.name for path in folder.iterdir()] == [f"{other.process.pid}.sock"]
        assert other.end() == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--break", "state:open"], "state: cannot be asked here"),
        (["--break", "tool:("], "mcpsniff stdio: "),
        (["--break-timeout", "3"], "--break-timeout is for what --break holds"),
        (["--break", "tool:x", "--break-timeout", "0"], "--break-timeout needs a number of seconds above 0"),
        (["--break", "tool:x", "--break-timeout", "soon"], "needs a number of seconds, not 'soon'"),
    ],
)
def test_wrong_usage_starts_nothing(tmp_path: Path, folder: Path, options: list[str], said: str) -> None:
    made = tmp_path / "made"
    with Wrapped(tmp_path, ["touch", str(made)], *options) as running:
        assert running.wait() == 2
    assert said in running.stderr.decode()
    assert not made.exists()
    assert not folder.exists() or not list(folder.iterdir())


def test_a_command_that_cannot_be_started_leaves_no_socket(tmp_path: Path, folder: Path) -> None:
    with Wrapped(tmp_path, ["/nonexistent/server"], "--break", "tool:x") as running:
        assert running.wait() == 127
    assert not list(folder.iterdir())


def test_the_desk_of_a_busy_wrapper_survives_nonsense(tmp_path: Path, folder: Path) -> None:
    with wrapped(tmp_path, "--break", "tool:add dir:c2s") as running, desk_of(running) as link:
        running.send(call(1, a=1) + b"\n")
        assert holds(link, 1)
        for nonsense in (os.urandom(100_000), b"\n" * 1000, b'{"do": "pass", "n": 1e400}\n', b'"\\ud800"\n'):
            with socket.socket(socket.AF_UNIX) as other:
                other.connect(str(folder / f"{running.process.pid}.sock"))
                other.sendall(nonsense)
        assert list(link.held) == [1]
        link.order("pass all")
        assert running.read_line()
        assert running.end() == 0
    assert b"Traceback" not in running.stderr
