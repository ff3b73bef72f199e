"""`mcpsniff forward` on the command line: what is wrong with it, what it says, and its end."""

import json
import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import pytest

from mcpsniff.cli.options import FORWARD
from mcpsniff.proxy.mitm.forward import Seen
from mcpsniff.proxy.mitm.standing import summary
from tests.cli.running import COMMAND, environment, run
from tests.proxy.relayed import EVENTS, Peer, Upstream, answer, chunk, post
from tests.proxy.wrapped import wait_for

ASK = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
SAID = b'{"jsonrpc":"2.0","id":1,"result":{}}'


@contextmanager
def forwarding(folder: Path, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    home = environment(HOME=str(folder), MCPSNIFF_DIR=str(folder / "captures"))
    child = subprocess.Popen(
        [*COMMAND, "forward", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=home,
        stdin=subprocess.DEVNULL,
    )
    try:
        yield child
    finally:
        child.kill()
        child.wait(60)


def url_of(child: subprocess.Popen[bytes], *, quiet: bool) -> tuple[str, bytes]:
    """The proxy's address, and what was said up to it."""
    stream = child.stdout if quiet else child.stderr
    assert stream is not None
    said = b""
    while not (found := re.search(rb"http://127\.0\.0\.1:(\d+)\b.*\n", said)):
        piece = os.read(stream.fileno(), 4096)
        assert piece, said
        said += piece
    return found[1].decode(), said


def ask(port: str, upstream: Upstream) -> bytes:
    with Peer(socket.create_connection(("127.0.0.1", int(port)), 10)) as peer:
        peer.send(post(ASK, "Content-Type: application/json", target=f"http://127.0.0.1:{upstream.port}/mcp"))
        return peer.next_message()[1]


def script(peer: Peer) -> None:
    while True:
        peer.next_message()
        peer.send(answer(SAID, "Content-Type: application/json"))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_shows_what_it_records_and_leaves_capture_and_transcript(tmp_path: Path, number: signal.Signals) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # where the tests run in the background it is ignored
    with Upstream(script) as upstream, forwarding(tmp_path) as child:
        port, said = url_of(child, quiet=False)
        assert ask(port, upstream) == SAID
        shown = b""
        while b"ping" not in shown:  # on a busy machine the view may take a while to begin
            piece = os.read(child.stdout.fileno(), 65536)
            assert piece, shown
            shown += piece
        child.send_signal(number)
        out, err = child.communicate(timeout=60)
        out = shown + out
    assert child.returncode == 0
    assert b"ping" in out
    text = (said + err).decode()
    assert f"recorded 1 HTTP exchange with http://127.0.0.1:{upstream.port}" in text
    assert "mcpsniff ca tells how" in text
    captures = sorted((tmp_path / "captures").glob("forward-*"))
    assert [path.suffix for path in captures] == [".mcpcap", ".md"]
    assert all(str(path) in text for path in captures)


def test_quietly_it_says_the_address_alone(tmp_path: Path) -> None:
    with Upstream(script) as upstream, forwarding(tmp_path, "--quiet", "--no-transcript") as child:
        port, said = url_of(child, quiet=True)
        assert ask(port, upstream) == SAID
        child.terminate()
        out, err = child.communicate(timeout=60)
    assert (said + out).decode() == f"http://127.0.0.1:{port}\n"
    assert err == b""


def test_a_port_that_is_taken_is_refused_with_who_has_it(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = run("forward", "--listen", f"127.0.0.1:{port}", env={"HOME": str(tmp_path)})
    assert refused.status == 2
    assert refused.out == ""
    assert f"cannot listen at 127.0.0.1:{port}: the port is in use" in refused.err
    assert refused.err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--only", "https://a.test"], "--only takes a host"),
        (["--listen", "nowhere"], "--listen takes HOST:PORT"),
        (["--upstream-ca", "/does/not/exist"], "--upstream-ca"),
        (["surplus"], "mcpsniff forward takes options only, not surplus"),
        (["https://a.test/mcp"], "a server's address goes to mcpsniff http URL"),
        (["--onyl", "x"], "--only"),
    ],
)
def test_bad_usage_begins_nothing(tmp_path: Path, words: list[str], said: str) -> None:
    refused = run("forward", *words, env={"HOME": str(tmp_path), "MCPSNIFF_DIR": str(tmp_path / "captures")})
    assert refused.status == 2
    assert said in refused.err
    assert not (tmp_path / "captures").exists()


def test_the_command_is_the_table() -> None:
    from mcpsniff.cli.forward import command

    options = [tuple(param.opts) for param in command.params if isinstance(param, click.Option)]
    assert options == [option.spellings for option in FORWARD]


def test_where_others_reach_it(tmp_path: Path) -> None:
    from mcpsniff.proxy.mitm.standing import outward

    other = outward("http://127.0.0.1:8888")
    assert other is None or (other.startswith("http://") and other.endswith(":8888") and "127." not in other)


def test_the_end_names_what_only_left_out() -> None:
    text = summary(Seen(2, 0, 3, [], ["a.test:8443", "https://b", "https://a.test"], [], []), ["a.test:443"])
    assert text == (
        "none of what passed was MCP to a.test:443 (--only); it went to a.test:8443, https://b:"
        " add --only a.test:8443 --only b"
    )


def stream(peer: Peer) -> None:
    """An event stream that goes on."""
    peer.next_message()
    peer.send(EVENTS + b"Transfer-Encoding: chunked\r\n\r\n" + chunk(b"data: " + SAID + b"\n\n"))
    peer.read()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_what_is_left_of_a_stream_that_goes_on(tmp_path: Path, number: signal.Signals) -> None:
    """Told to end, it says that it was; killed, it has all up to the last moments."""
    with Upstream(stream) as upstream, forwarding(tmp_path, "--listen", "0.0.0.0:0", "--no-transcript") as child:
        port, said = url_of(child, quiet=False)
        with Peer(socket.create_connection(("127.0.0.1", int(port)), 10)) as peer:
            peer.send(post(ASK, "Content-Type: application/json", target=f"http://127.0.0.1:{upstream.port}/mcp"))
            peer.read_until(SAID)
            (path,) = (tmp_path / "captures").glob("*.mcpcap")
            assert wait_for(lambda: '"result' in path.read_text())
            child.send_signal(number)
            _, err = child.communicate(timeout=60)
            assert not peer.read_all().endswith(b"0\r\n\r\n")
    records = [json.loads(line) for line in path.read_text().splitlines()[1:]]
    closed = {channel: what for _, kind, channel, what in records if kind == "close"}
    assert closed[0] == {"how": "eof"}
    assert closed.get(1) == ({"how": "aborted", "error": "mcpsniff was stopped"} if number == signal.SIGTERM else None)
    assert child.returncode == (0 if number == signal.SIGTERM else -number)
    assert b"it listens on all interfaces: other machines reach it " in said + err
    shown = run("show", str(path))
    assert shown.status == 0
    assert "ping" in shown.out


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        (Seen(0, 0, 0, [], [], [], []), "no client has used the proxy"),
        (
            Seen(2, 0, 3, [], ["a"], [], []),
            "none of what passed was MCP: 3 exchanges passed unrecorded (a); --all",
        ),
        (Seen(1, 0, 0, [], ["a:443"], [], []), "nothing is recorded: no HTTP went through the proxy to a:443"),
        (
            Seen(1, 0, 0, [], ["a:443"], [("a:443", "unknown ca")], []),
            "nothing is recorded: what a client had to say to a:443 is unknown",
        ),
        (
            Seen(1, 0, 2, [], ["a:443"], [], ["cannot"], rejected=1),
            (
                "nothing is recorded: what clients had to say to a server that was not reached is unknown; 2 other"
                " exchanges passed unrecorded; mcpsniff itself answered 1 other request, unrecorded"
            ),
        ),
        (
            Seen(9, 17, 0, ["http://a"], [], [], [], unreached=["http://b:9"], answered=2, rejected=4),
            (
                "recorded 15 HTTP exchanges with http://a, and 2 HTTP requests that did not reach http://b:9; mcpsniff"
                " itself answered 4 other requests, unrecorded"
            ),
        ),
        (Seen(1, 1, 0, [], [], [], [], answered=1), "recorded 1 HTTP request that mcpsniff answered itself"),
        (Seen(2, 1, 0, ["a", "b"], [], [], []), "recorded 1 HTTP exchange with a, b"),
        (
            Seen(2, 2, 1, list("abcdefg"), [], [], []),
            "recorded 2 HTTP exchanges with a, b, c, d, e and 2 more; 1 other",
        ),
    ],
)
def test_the_end_says_what_passed(seen: Seen, said: str) -> None:
    assert summary(seen).startswith(said)
