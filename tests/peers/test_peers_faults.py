"""What real clients do under each fault, on pipes and over HTTP: they survive, or fail with an error that says so.

Each call that a fault strikes is followed by one that none does. The transcript names the fault beside the symptom.
"""

import contextlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import run
from tests.peers.harness import PEERS, RELAY, REPO, SDK1, SDK2, SECONDS, TAKES_LONG, free_port, missing, running

pytestmark = [pytest.mark.peers, pytest.mark.timeout(SECONDS + 40)]

CLIENTS = {
    "sdk1": [SDK1 / "python", PEERS / "faulty_sdk1.py"],
    "sdk2": [SDK2 / "python", PEERS / "faulty_sdk2.py"],
    "ts1": ["node", PEERS / "faulty_ts.mjs", "1"],
    "ts2": ["node", PEERS / "faulty_ts.mjs", "2"],
}
PYTHON = ("sdk1", "sdk2")
SERVER = REPO / "tests" / "faults" / "server.py"
SOON, LATE = 1, 60
"""Seconds for calls that are not answered, and for those that are."""
FAULTS = {
    "latency": "latency=300ms",
    "drop": "drop",
    "drop-answer": "drop,if=kind:response",
    "duplicate": "duplicate",
    "reorder": "reorder=100ms",
    "wrong-id": "wrong-id",
    "wrong-id-other": "wrong-id=other",
    "error": "error=-32050:not today",
    "error-answer": "error=-32051:not you,if=kind:response",
    "cut": "cut",
    "half-line": "half-line",
    "noise": "noise",
    "invalid-utf8": "invalid-utf8",
    "slow": "slow=500",
    "disconnect": "disconnect",
    "stall": "stall",
    "401": "status=401",
    "404": "status=404",
    "503": "status=503",
}
SURVIVED = {"latency", "duplicate", "reorder", "wrong-id", "slow"}
CODES = {"error": -32050, "error-answer": -32051}
PHRASES = {"401": "Unauthorized", "404": "Not Found|Session terminated", "503": "Service Unavailable"}
SESSIONS = {
    "stdio": [
        [name for name in FAULTS if name not in ("invalid-utf8", "cut", "disconnect", "stall", *PHRASES)]
        + ["cut", "stall"],
        ["invalid-utf8"],
        ["disconnect"],
    ],
    "http": [
        [*sorted(SURVIVED), *CODES, "noise", "invalid-utf8"],
        ["drop"], ["drop-answer"], ["wrong-id-other"], ["cut"], ["half-line"], ["disconnect"], ["stall"],
        ["401"], ["404"], ["503"],
    ],
    "json": [
        ["reorder", "slow", "noise", "invalid-utf8"],
        ["drop-answer", "half-line"],
        ["cut"],
        ["disconnect"],
        ["stall"],
    ],
}  # fmt: skip
RESULT, ERROR, EITHER = "a result", "an error", "a result or an error"
ERRORS = {
    "sdk1": {"McpError", "ClosedResourceError"},
    "sdk2": {"MCPError", "ClosedResourceError"},
    "ts1": {"McpError", "StreamableHTTPError", "SyntaxError", "TypeError", "Error"},
    "ts2": {"SdkError", "ProtocolError", "SdkHttpError", "SyntaxError", "TypeError", "Error"},
}
"""What these SDKs raise. A SyntaxError says that a body is no JSON, a TypeError that a request got no answer, Error and
ClosedResourceError that a pipe has ended."""


def struck(client: str, way: str, fault: str) -> str:
    """What a call comes to that a fault strikes."""
    if fault in SURVIVED:
        return RESULT
    if fault == "noise":
        return ERROR if way == "json" or (way == "http" and client == "sdk2") else RESULT
    if fault == "invalid-utf8":
        return ERROR if client in PYTHON and way != "http" else RESULT
    if fault == "wrong-id-other" and way == "http":
        return EITHER  # SDK 2 knows by the stream what was asked
    return ERROR


def after(client: str, way: str, fault: str) -> str:
    """What the call after it comes to."""
    if way == "stdio":
        if fault in ("disconnect", "stall") or (fault == "invalid-utf8" and client in PYTHON):
            return ERROR
        return EITHER if fault == "cut" else RESULT  # the next line is glued to what was left
    return RESULT


def end_of(client: str, fault: str) -> str:
    """How a fault may end the whole session, as a pattern: exceptions come out of the tasks of the Python SDKs."""
    if fault == "invalid-utf8" and client in PYTHON:
        return "UnicodeDecodeError"
    if fault in ("cut", "disconnect") and client in PYTHON:
        return "ReadError|RemoteProtocolError"
    return rf"HTTPStatusError.*{PHRASES[fault]}" if client == "sdk1" and fault in PHRASES else ""


def options(faults: list[str]) -> list[str]:
    found = []
    for name in faults:
        spec, _, more = FAULTS[name].partition(",if=")
        found += ["--fault", f'{spec},if=text:"struck <{name}>" {more}'.rstrip()]
    return found


@dataclass
class Session:
    """What one client is to do, and what came of it."""

    client: str
    way: str
    faults: list[str]
    target: Any
    steps: dict[str, Any]
    failed: str = ""

    def line(self) -> str:
        seconds = {
            fault: [SOON if does(self.client, self.way, fault) != RESULT else LATE for does in (struck, after)]
            for fault in self.faults
        }
        transport = "stdio" if self.way == "stdio" else "http"
        for fault in {*CODES, *PHRASES} & seconds.keys():
            seconds[fault][0] = LATE
        return json.dumps({"transport": transport, "target": self.target, "faults": seconds})


def installed(client: str) -> bool:
    needed = [SDK1 / "python", *CLIENTS[client][:1]]
    return all(Path(one).exists() or one == "node" for one in needed) and (PEERS / "node_modules").exists()


def hold(client: str, sessions: list[Session]) -> list[Session]:
    """Let a client hold its sessions, all at once."""
    done = subprocess.run(
        [*map(str, CLIENTS[client])],
        cwd=REPO,
        input="".join(f"{session.line()}\n" for session in sessions),
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=SECONDS,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )
    assert done.returncode == 0, done.stderr
    for session, line in zip(sessions, map(json.loads, done.stdout.split("\n")[:-1]), strict=True):
        session.steps, session.failed = line.get("steps", {}), line.get("failed", "")
    return sessions


@dataclass
class Held:
    """All sessions, and the folder of their captures."""

    folder: Path
    sessions: dict[tuple[str, str], list[Session]]


@contextlib.contextmanager
def relaying(folder: Path) -> Iterator[dict[str, str]]:
    """A server with event streams and with bodies, and `mcpsniff http` with all faults before it."""
    port, fronts = free_port(), {"http": free_port(), "json": free_port()}
    command = [*RELAY, "--dir", str(folder), "--quiet", "--no-transcript", *options(list(FAULTS))]
    for (way, front), path in zip(fronts.items(), ("mcp", "json"), strict=True):
        command += [f"{way}=http://127.0.0.1:{port}/{path}", "--listen", f"127.0.0.1:{front}"]
    log = folder / "mcpsniff.log"
    with (
        running([sys.executable, str(SERVER), str(port)], [port], folder / "server.log"),
        running(command, list(fronts.values()), log) as process,
    ):
        yield {
            way: f"http://127.0.0.1:{front}/{path}"
            for (way, front), path in zip(fronts.items(), ("mcp", "json"), strict=True)
        }
    assert process.returncode == 0, log.read_text(errors="replace")


def wrapper(folder: Path, label: str, faults: list[str]) -> list[str]:
    words = ["stdio", "--dir", str(folder), "--label", label, "--quiet", "--no-transcript", *options(faults)]
    return [sys.executable, "-m", "mcpsniff", *words, "--", sys.executable, str(SERVER)]


@pytest.fixture(scope="module")
def held(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Held:
    """All sessions, the clients side by side: most of it is waiting."""
    folder = tmp_path_factory.mktemp("faults")
    clients = [client for client in CLIENTS if installed(client)]
    with relaying(folder) if clients else contextlib.nullcontext({}) as urls, ThreadPoolExecutor(len(CLIENTS)) as pool:
        futures: list[Future[list[Session]]] = []
        for client in clients:
            sessions = [
                Session(client, way, faults, urls.get(way) or wrapper(folder, f"{client}-{number}", faults), {})
                for way, several in SESSIONS.items()
                for number, faults in enumerate(several)
            ]
            futures.append(pool.submit(hold, client, sessions))
        found: dict[tuple[str, str], list[Session]] = {}
        for future in futures:
            for session in future.result():
                found.setdefault((session.client, session.way), []).append(session)
    return Held(folder, found)


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("way", SESSIONS)
def test_a_client_survives_or_says_what_is_wrong(held: Held, client: str, way: str) -> None:
    if not installed(client):
        missing(f"the client {client!r} or the server")
    wrong = []
    for session in held.sessions[client, way]:
        for fault in session.faults:
            end = end_of(client, fault)
            if end and re.search(end, session.failed):
                continue
            calls = session.steps.get(fault, [{}, {}])
            for which, said, expected in zip(
                ("struck", "plain"), calls, (struck(client, way, fault), after(client, way, fault)), strict=True
            ):
                if not suits(client, fault if which == "struck" else "", said, expected, f"Echo: {which}"):
                    wrong.append(f"{fault}, the call {which}: {said}, not {expected}; {session.failed}")
    assert not wrong, "\n".join(wrong)


def suits(client: str, fault: str, said: dict[str, Any], expected: str, text: str) -> bool:
    """True if a call came to what was expected."""
    if "result" in said:
        return expected != ERROR and said["result"].startswith(text)
    if expected == RESULT or said.get("error") not in ERRORS[client]:
        return False
    if fault in CODES:
        return said["code"] == CODES[fault]
    return fault not in PHRASES or re.search(PHRASES[fault], said["message"]) is not None


# What no UTF-8 ends is killed at once by the Python SDKs, mcpsniff too: the last words may be missing.
CAPTURES = [
    f"{client}-{number}"
    for client in CLIENTS
    for number, faults in enumerate(SESSIONS["stdio"])
    if client not in PYTHON or faults != ["invalid-utf8"]
]


@pytest.mark.parametrize("name", ["http", "json", *CAPTURES])
def test_the_transcript_names_the_fault_beside_the_symptom(held: Held, name: str) -> None:
    client, _, number = name.partition("-")
    if not held.sessions or (number and not installed(client)):
        missing("the clients or the server")
    (capture,) = held.folder.glob(f"{name}-2*.mcpcap")
    shown = run("show", str(capture))
    assert shown.status == 0, shown.err
    faults = SESSIONS["stdio"][int(number)] if number else [one for several in SESSIONS[name] for one in several]
    text = " ".join(shown.out.replace("│", " ").split())
    lost = [fault for fault in faults if f"fault {told(fault)} (" not in text]
    assert not lost, f"{lost}\n{shown.out}"
    assert blamed(capture) == [], shown.out


def blamed(capture: Path) -> list[str]:
    """Findings that call a consequence of a fault a peer's doing."""
    done = run("show", str(capture), "--format", "json", "--filter", "severity:>=warning")
    assert done.status == 0, done.err
    events = [json.loads(line) for line in done.out.splitlines()]
    return [
        str(event)
        for event in events
        if event["type"] == "finding"
        and event["severity"] in ("warning", "error")
        and event["blame"] != "mcpsniff"
        and event["name"] not in {*TAKES_LONG, "write-after-close"}  # a client may well have seen the end of the pipe
    ]


def told(fault: str) -> str:
    """A fault as a transcript has it."""
    spec = FAULTS[fault].partition(",")[0]
    value = {"wrong-id": "=type", "cut": "=50%", "half-line": "=50%"}.get(spec, "")
    return spec.replace(" ", "%20") + value
