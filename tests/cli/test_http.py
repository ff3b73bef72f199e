"""`mcpsniff http` on the command line: what is wrong with it, what it says, and the live view."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest

from mcpsniff.cli.options import HTTP, default, parse
from mcpsniff.cli.sizes import in_bytes
from mcpsniff.errors import UsageError
from mcpsniff.proxy.address import parse_listen, parse_upstream, parse_upstreams
from tests.cli.running import run
from tests.proxy.relayed import Relay, Upstream, answer, get, post
from tests.proxy.wrapped import environment, wait_for

DEFAULTS = {option.name: default(option) for option in HTTP}
SILENT = "http://127.0.0.1:9"


@pytest.mark.parametrize(
    ("words", "changed", "upstreams"),
    [
        (["a=http://x"], {}, ["a=http://x"]),
        (["http://x", "--quiet", "http://y", "--label=z"], {"quiet": True, "label": "z"}, ["http://x", "http://y"]),
        (["--listen", ":1", "u", "--listen=:2"], {"listen": [":1", ":2"]}, ["u"]),
        (["--allow-host", "a", "--allow-host", "*", "u"], {"allow_host": ["a", "*"]}, ["u"]),
        (["--max-size", "5M", "--rotate-size=0", "u"], {"max_size": 5 << 20, "rotate_size": None}, ["u"]),
        (["--rotate-every", "12h", "u"], {"rotate_every": 43200.0}, ["u"]),
        (["--host-header", "keep", "--", "--odd"], {"host_header": "keep"}, ["--odd"]),
    ],
)
def test_options_stand_anywhere_and_some_may_be_repeated(
    words: list[str], changed: dict[str, object], upstreams: list[str]
) -> None:
    assert parse(HTTP, words, anywhere=True) == ({**DEFAULTS, **changed}, upstreams)
    assert parse(HTTP, [], anywhere=True) == (DEFAULTS, [])  # what is repeated begins anew each time


def test_the_click_command_is_the_same_table(tmp_path: Path) -> None:
    from mcpsniff.cli.http import command

    options = {tuple(param.opts): param for param in command.params if isinstance(param, click.Option)}
    assert set(options) == {option.spellings for option in HTTP}
    seen: dict[str, object] = {}
    command.callback = lambda **values: seen.update(values)
    words = ["--listen", ":1", "u", "--host-header", "keep", "--rotate-every", "1d", "v", "--quiet"]
    for line in (["u"], words):
        command.main(line, standalone_mode=False)
        values, upstreams = parse(HTTP, line, anywhere=True)
        lists = {name: list(value) if isinstance(value, tuple) else value for name, value in seen.items()}
        assert lists == {**values, "upstreams": upstreams}


@pytest.mark.parametrize(
    ("text", "size"),
    [("0", 0), ("65536", 65536), ("500k", 512000), ("64M", 64 << 20), ("1.5 GiB", 3 << 29), ("2tb", 2 << 40)],
)
def test_sizes(text: str, size: int) -> None:
    assert in_bytes(text) == size


@pytest.mark.parametrize(
    ("text", "said"), [("", "nothing"), ("64", "did you mean 64M"), ("-1", "-1"), ("5 MX", "5 MX"), ("nan", "nan")]
)
def test_what_is_no_size_is_named(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        in_bytes(text)


@pytest.mark.parametrize(
    ("word", "url", "label"),
    [
        ("http://localhost:8000/mcp", "http://localhost:8000/mcp", "localhost-8000"),
        ("http://localhost.:8000/", "http://localhost.:8000/", "localhost.8000"),
        (f"http://{'a' * 63}.b_c.example", f"http://{'a' * 63}.b_c.example", "a" * 63),
        ("HTTP://LocalHost/Sse?a=b=c", "http://localhost/Sse?a=b=c", "localhost-80"),
        ("weather=http://[::1]:8000", "http://[::1]:8000", "weather"),
        ("my server=http://10.0.0.1:80/x#y", "http://10.0.0.1/x", "my-server"),
        ("http://bücher.example/", "http://xn--bcher-kva.example/", "xn-bcher-kva.example-80"),
    ],
)
def test_upstreams(word: str, url: str, label: str) -> None:
    upstream = parse_upstream(word)
    assert (upstream.url, upstream.label) == (url, label)


@pytest.mark.parametrize(
    ("words", "labels"),
    [
        (["http://h:1/a", "http://h:2/a"], ["h-1", "h-2"]),
        (["http://h:1/a", "http://h:1/b?c", "http://h:2"], ["h-1-a", "h-1-b", "h-2"]),
        (["http://h:1", "http://h:1/b/c", "x=http://h:1"], ["h-1", "h-1-b-c", "x"]),
    ],
)
def test_upstreams_at_one_port_are_told_apart_by_their_paths(words: list[str], labels: list[str]) -> None:
    assert [upstream.label for upstream in parse_upstreams(words)] == labels


@pytest.mark.parametrize(
    ("word", "place"),
    [
        ("127.0.0.1:9000", ("127.0.0.1", 9000)),
        (":9000", ("127.0.0.1", 9000)),
        ("9000", ("127.0.0.1", 9000)),
        ("localhost:0", ("127.0.0.1", 0)),
        ("[::1]:1", ("::1", 1)),
        ("0.0.0.0:80", ("0.0.0.0", 80)),
    ],
)
def test_places_to_listen(word: str, place: tuple[str, int]) -> None:
    assert parse_listen(word) == place


BAD = [
    ([], "no upstream given"),
    (["localhost:8000"], "localhost:8000 is no URL; did you mean http://localhost:8000?"),
    (["8000"], "did you mean http://localhost:8000?"),
    (["x=example.com/mcp"], "did you mean http://example.com/mcp?"),
    (["https://a b/mcp"], "no usable host"),
    (["https://a/", "--upstream-ca", "/nowhere.pem"], "--upstream-ca /nowhere.pem: No such file or directory"),
    (["https://a/", "--upstream-ca", "/dev/null"], "--upstream-ca /dev/null holds no certificate in PEM form"),
    (["http://a/", "--upstream-ca", "/nowhere.pem"], "--upstream-ca is for upstreams with https://"),
    (["http://a/", "--insecure"], "--insecure is for upstreams with https://"),
    (["ws://example.com"], "http:// and https://, not ws://"),
    (["http://"], "no usable host"),
    (["http://:8000"], "no usable host"),
    (["http://a b/"], "no usable host"),
    (["http://a..b:1/"], "no usable host"),
    (["http://.a/"], "no usable host"),
    (["http://./"], "no usable host"),
    (["http://a../"], "no usable host"),
    (["http://b\xfccher..example/"], "no usable host"),
    ([f"http://{'a' * 64}/"], "no usable host"),
    ([f"http://{'a.' * 127}b/"], "no usable host"),
    (["http://[::1::]/"], "no usable host"),
    (["http://[1.2.3.4]/"], "no usable host"),
    (["http://a", "--listen", "a..b:1"], "no usable host"),
    (["http://a:99999/"], "no port 99999"),
    (["http://a:x/"], "no port x"),
    (["http://a:80:90/"], "no usable host"),
    (["http://a:\x1b[31m/"], "no usable host"),
    (["http://a:" + "9" * 5000], "no port 9"),
    (["http://a:0/"], "no port 0"),
    (["http://u:p@a/"], "no user information"),
    (["http://a/ b"], "percent-encoded"),
    (["http://a/\x1b[31m"], "percent-encoded"),
    ([SILENT, "--listen", "nonsense"], "HOST:PORT"),
    ([SILENT, "--listen", "::1:80"], "[::1]:9000"),
    ([SILENT, "--listen", "127.0.0.1:80x"], "--listen 127.0.0.1:80x: there is no port 80x, they go from 1 to 65535"),
    ([SILENT, "--listen", "127.0.0.1:\u0663"], "no port"),
    ([f"a={SILENT}", "a=http://127.0.0.1:8"], "2 upstreams are called a: tell them apart by NAME=URL"),
    (["my server=" + SILENT, "my-server=http://127.0.0.1:8"], "2 upstreams are called my-server"),
    ([f"{SILENT}/mcp", f"{SILENT}/mcp?key=s3cret"], "2 upstreams are called 127.0.0.1-9-mcp"),
    (["127.0.0.1-9=http://127.0.0.1:8", SILENT], "2 upstreams are called 127.0.0.1-9:"),
    ([SILENT, "--listen", ":1", "--listen", ":2"], "2 times --listen for 1 upstream"),
    ([SILENT, "--listen", "192.0.2.1:0"], "does not have that address"),
    ([SILENT, SILENT, "--label", "x"], "NAME=URL"),
    ([SILENT, SILENT, "-o", "x"], "NAME=URL"),
    ([SILENT, "--host-header", "drop"], "keep, upstream"),
    ([SILENT, "--max-size", "lots"], "lots"),
    ([SILENT, "--rotate-every", "5"], "did you mean 5d?"),
    ([SILENT, "--liste", ":1"], "did you mean --listen?"),
    ([SILENT, "--quiet=1"], "takes no value"),
]


@pytest.mark.parametrize(("words", "said"), BAD)
def test_bad_usage_begins_nothing(tmp_path: Path, words: list[str], said: str) -> None:
    ran = run("http", *words, env={"MCPSNIFF_DIR": str(tmp_path / "captures")}, cwd=tmp_path)
    assert (ran.status, ran.out) == (2, "")
    assert said in ran.err
    assert len(ran.err.splitlines()) == 1
    assert ran.err.startswith("mcpsniff http: ")
    assert ran.err.endswith(" (try mcpsniff http --help)\n")
    assert "\x1b" not in ran.err
    assert os.listdir(tmp_path) == []


def test_a_port_in_use_is_told_with_whom_to_ask(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        ran = run("http", SILENT, "--listen", f"127.0.0.1:{port}", "--dir", str(tmp_path / "captures"))
    assert ran.status == 2
    assert f"cannot listen at 127.0.0.1:{port}: the port is in use" in ran.err
    assert f"(process {os.getpid()})" in ran.err or f"lsof -nP -iTCP:{port}" in ran.err
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_a_port_that_mcpsniff_itself_took_is_told_so(tmp_path: Path, host: str) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
    places = ["--listen", f"{host}:{port}", "--listen", f":{port}"]
    ran = run("http", f"a={SILENT}", "b=http://127.0.0.1:8", *places, "--dir", str(tmp_path / "captures"))
    assert ran.status == 2
    assert f"cannot listen at 127.0.0.1:{port}: mcpsniff itself listens there for a; each upstream needs" in ran.err
    assert "lsof" not in ran.err
    assert os.listdir(tmp_path) == []


def test_it_does_not_relay_to_itself(tmp_path: Path) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
    ran = run("http", f"http://localhost:{port}/mcp", "--listen", f":{port}", "--dir", str(tmp_path / "captures"))
    assert ran.status == 2
    assert f"http://localhost:{port}/mcp is where mcpsniff itself is to listen" in ran.err


def test_help_is_there() -> None:
    ran = run("http", "--help")
    assert ran.status == 0
    assert "[default: 1G]" in ran.out
    assert all(option.spellings[-1] in ran.out for option in HTTP)


def test_quietly_only_the_address_is_said(tmp_path: Path) -> None:
    with Relay(tmp_path, f"{SILENT}/mcp") as relay:
        assert relay.stop(signal.SIGINT) == 0
    assert re.fullmatch(rb"http://127\.0\.0\.1:\d+/mcp\n", relay.out)
    assert relay.err == b""


def test_other_machines_are_let_in_only_when_asked_for_and_with_a_warning(tmp_path: Path) -> None:
    with Relay(tmp_path, f"{SILENT}/mcp", "--listen", "0.0.0.0:0", quiet=False) as relay:
        assert relay.addresses() == [f"http://127.0.0.1:{relay.port}/mcp"]
        relay.stop()
    assert b"warning: whoever reaches this machine can use http://127.0.0.1:9 through that port" in relay.err


def test_a_capture_that_cannot_be_written_is_said_and_the_relay_goes_on(tmp_path: Path) -> None:
    (tmp_path / "captures").write_text("no folder")
    with (
        Upstream(lambda peer: peer.send(answer(peer.next_message()[1]))) as upstream,
        Relay(tmp_path, upstream.url, quiet=False) as relay,
    ):
        assert relay.ask(post(b"hello"))[1] == b"hello"
        assert relay.stop() == 0
    assert b"the session goes on without a capture" in relay.err


def test_secrets_of_the_upstreams_address_are_not_recorded(tmp_path: Path) -> None:
    with Relay(tmp_path, f"{SILENT}/mcp?api_key=s3cret") as relay:
        assert relay.addresses() == [f"http://127.0.0.1:{relay.port}/mcp?api_key=s3cret"]
        relay.connect().socket.close()
        capture = relay.recorded(lambda capture: capture.records)
    assert b"s3cret" not in capture.path.read_bytes()


def test_what_is_said_is_shown_while_it_is_said_and_to_the_end(tmp_path: Path) -> None:
    def serve(peer):
        while True:
            request = json.loads(peer.next_message()[1])
            reply = {"jsonrpc": "2.0", "id": request["id"], "result": {"tools": []}}
            peer.send(answer(json.dumps(reply).encode(), "Content-Type: application/json"))

    request = b'{"jsonrpc":"2.0","id":%d,"method":"tools/list"}'
    with Upstream(serve) as upstream, Relay(tmp_path, f"{upstream.url}/mcp", quiet=False) as relay:
        for number in range(3):
            relay.ask(post(request % number, "Content-Type: application/json"))
            assert wait_for(lambda n=number: relay.out.count(b"tools/list  id") >= n + 1)
        assert relay.stop(signal.SIGINT) == 0
    assert b"Summary" in relay.out


def test_who_stops_looking_stops_only_the_view(tmp_path: Path) -> None:
    with Upstream(lambda peer: peer.send(answer(peer.next_message()[1]))) as upstream:
        process = subprocess.Popen(
            [sys.executable, "-m", "mcpsniff", "http", upstream.url, "--no-transcript", "--dir", str(tmp_path / "c")],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(),
        )
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        told = b""
        while b"give the client" not in told:
            told += process.stderr.readline()
        port = int(re.findall(rb"client http://127.0.0.1:(\d+)", told)[0])
        for _ in range(3):
            with socket.create_connection(("127.0.0.1", port), 20) as client:
                client.sendall(post(b"hello") + get())
                assert client.recv(1000).endswith(b"hello")
            time.sleep(0.1)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        process.stderr.close()
