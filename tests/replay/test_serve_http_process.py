"""`mcpsniff replay CAPTURE --serve http|sse` as a process: what it says, and how it ends."""

import http.client
import json
import os
import re
import signal
import socket
import time
from pathlib import Path
from typing import Any, Self

import pytest

from tests.captures.samples import FOLDER
from tests.cli.ready import ready
from tests.cli.running import PATIENCE, environment, run
from tests.replay.serving import BOTH, INITIALIZE
from tests.replay.staging import call

URL = re.compile(rb"http://127\.0\.0\.1:(\d+)(/\w+)\n")


class Serving:
    """The process, from when it listens until the end of the block."""

    def __init__(self, *words: str) -> None:
        self.err = b""
        self._reading, writing = os.pipe()
        null = os.open(os.devnull, os.O_RDWR)
        self.process: Any = ready().start(["replay", *words], [null, null, writing], environment(), None)
        os.close(writing)
        os.close(null)

    def __enter__(self) -> Self:
        while not (found := URL.search(self.err)):
            data = os.read(self._reading, 65536)
            assert data, self.err
            self.err += data
        self.port, self.path = int(found[1]), found[2].decode()
        return self

    def __exit__(self, *exc: object) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(PATIENCE)
        os.close(self._reading)

    def end(self, number: int | None = signal.SIGTERM) -> int:
        """Ask for the end, if a signal is given; return the exit status."""
        if number is not None:
            self.process.send_signal(number)
        while data := os.read(self._reading, 65536):
            self.err += data
        return int(self.process.wait(PATIENCE))

    def post(self, connection: http.client.HTTPConnection, said: Any, **headers: str) -> http.client.HTTPResponse:
        fields = {"Accept": BOTH, "Content-Type": "application/json", **headers}
        connection.request("POST", self.path, json.dumps(said), fields)
        return connection.getresponse()


def test_it_says_where_it_serves_and_at_the_end_what_came_of_it(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    options = ("--strict", "--report", str(report))
    with Serving(str(FOLDER / "weather.mcpcap"), "--serve", "http", *options) as serving:
        connection = http.client.HTTPConnection("127.0.0.1", serving.port, timeout=PATIENCE)
        opened = serving.post(connection, INITIALIZE)
        opened.read()
        session = {"Mcp-Session-Id": opened.headers["Mcp-Session-Id"] or ""}
        missed = serving.post(connection, call("m", "never"), **session)
        assert b'"id":"m"' in missed.read()
        stream = http.client.HTTPConnection("127.0.0.1", serving.port, timeout=PATIENCE)
        stream.request("GET", serving.path, headers={"Accept": "text/event-stream", **session})
        stream.getresponse()
        assert serving.end() == 1
        connection.close()
        stream.close()
    first, *rest = serving.err.decode().splitlines()
    assert first == f"mcpsniff: serving the capture at http://127.0.0.1:{serving.port}/mcp"
    assert any("missed" in line for line in rest), rest
    assert all(line.startswith("mcpsniff: ") for line in rest)
    assert json.loads(report.read_bytes())["missed"] == 1


@pytest.mark.parametrize("way", ["http", "sse", "http without an end"])
def test_with_once_it_ends_when_the_first_client_has_left(way: str) -> None:
    sample = FOLDER / ("weather-sse.mcpcap" if way == "sse" else "weather.mcpcap")
    patience = "1.5" if "without" in way else "60"
    with Serving(str(sample), "--serve", way.split(maxsplit=1)[0], "--once", "--timeout", patience) as serving:
        looking = socket.create_connection(("127.0.0.1", serving.port))
        looking.close()  # whoever only looks whether somebody listens is no client
        connection = http.client.HTTPConnection("127.0.0.1", serving.port, timeout=PATIENCE)
        began = time.monotonic()
        if way == "sse":
            connection.request("GET", serving.path, headers={"Accept": "text/event-stream"})
            assert connection.getresponse().status == 200
        else:
            opened = serving.post(connection, INITIALIZE)
            assert (opened.status, bool(opened.read())) == (200, True)
        if way == "http":
            session = {"Mcp-Session-Id": opened.headers["Mcp-Session-Id"] or ""}
            connection.request("DELETE", serving.path, headers=session)
            assert connection.getresponse().status == 200
        connection.close()
        assert serving.end(None) == 0
        assert time.monotonic() - began > (1.4 if "without" in way else 0.9)


def test_an_address_where_nobody_can_listen_and_a_wrong_one_are_errors_of_one_line() -> None:
    weather = str(FOLDER / "weather.mcpcap")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ran = run("replay", weather, "--serve", "sse", "--listen", str(port))
    assert (ran.status, ran.err.count("\n")) == (2, 1)
    assert f"cannot listen at 127.0.0.1:{port}: the port is in use" in ran.err
    assert "--listen chooses another one" in ran.err
    for wrong in ("99999", "99999999", "nonsense", ""):
        ran = run("replay", weather, "--serve", "http", "--listen", wrong)
        assert (ran.status, ran.err.count("\n")) == (2, 1), wrong


@pytest.mark.parametrize("host", ["0.0.0.0", "*"])
def test_who_listens_to_other_machines_is_told_and_answers_under_any_name(host: str) -> None:
    with Serving(str(FOLDER / "weather.mcpcap"), "--serve", "http", "--listen", f"{host}:0") as serving:
        connection = http.client.HTTPConnection("127.0.0.1", serving.port, timeout=PATIENCE)
        opened = serving.post(connection, INITIALIZE, Host="replay.example:80")
        assert opened.status == 200
        opened.read()
        foreign = serving.post(connection, INITIALIZE, Origin="https://elsewhere.example")
        assert foreign.status == 403
        connection.close()
        assert serving.end() == 0
    assert b"warning: whoever reaches this machine" in serving.err
