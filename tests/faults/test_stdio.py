"""A thousand exchanges through `mcpsniff stdio` with faults, and the same faults again."""

import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

from mcpsniff.capture.reader import open_capture
from mcpsniff.proxy.faults.recorded import faults_of
from tests.cli.running import COMMAND, PATIENCE, environment, run

SERVER = Path(__file__).with_name("server.py")
EXCHANGES = 1000
FAULTS = (
    "latency=0ms..3ms,p=0.1", "drop,p=0.05", "duplicate,p=0.05", "wrong-id,p=0.03", "wrong-id=none,p=0.02",
    "error=-32000:no (not now) + x,if=kind:response,p=0.05", "cut,p=0.02", "half-line=10,p=0.03", "noise,p=0.05",
    "invalid-utf8,p=0.03", "slow=50k,p=0.02",
)  # fmt: skip


def session() -> bytes:
    said = [
        {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
    ]
    for number in range(1, EXCHANGES):
        params = {"name": f"tool{number % 7}", "arguments": {"n": number}}
        said.append({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})
    return "".join(json.dumps(one) + "\n" for one in said).encode()


def held(folder: Path, label: str, *options: str) -> subprocess.CompletedProcess[bytes]:
    words = ["stdio", "--dir", str(folder), "--label", label, "--no-transcript", *options, "--", sys.executable, SERVER]
    command = [*COMMAND, *map(str, words)]
    done = subprocess.run(command, input=session(), capture_output=True, env=environment(), timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    return done


def wrapped(*faults: str) -> list[str]:
    return [word for fault in faults for word in ("--fault", fault)]


def capture(folder: Path, label: str) -> str:
    (path,) = folder.glob(f"{label}-2*.mcpcap")
    return str(path)


def struck(folder: Path, label: str) -> dict[str, list[str]]:
    return {place: [one.text for one in found] for place, found in faults_of(capture(folder, label)).items()}


def test_a_thousand_exchanges_have_the_same_faults_again(tmp_path: Path) -> None:
    first = held(tmp_path, "first", *wrapped(*FAULTS))
    seed = re.search(r"--fault-seed ([0-9]+) repeats them", first.stderr.decode())
    assert seed is not None, first.stderr.decode()
    seeded = held(tmp_path, "seeded", *wrapped(*FAULTS), "--fault-seed", seed[1])
    again = held(tmp_path, "again", "--fault-from", capture(tmp_path, "first"))
    twice = held(tmp_path, "twice", "--fault-from", "again")
    faults = struck(tmp_path, "first")
    kinds = Counter(one.partition("=")[0] for several in faults.values() for one in several)
    assert min(kinds.values()) > 5, kinds
    assert len(kinds) == 10
    for run_again, label in ((seeded, "seeded"), (again, "again"), (twice, "twice")):
        assert struck(tmp_path, label) == faults
        assert run_again.stdout == first.stdout
    assert f"faults: all {sum(kinds.values())} of " in again.stderr.decode()
    remarks = [
        record.body["text"]
        for record in open_capture(capture(tmp_path, "seeded")).records()
        if record.kind == "comment"
    ]
    assert any("--fault 'drop,p=0.05' " in remark and f"--fault-seed {seed[1]}" in remark for remark in remarks)


def test_messages_change_places_and_none_is_lost(tmp_path: Path) -> None:
    """Whether the next one overtakes, or the time is up: every message leaves, also at the end."""
    first = held(tmp_path, "first", *wrapped("reorder=1m,p=0.3", "error,p=0.1"), "--fault-seed", "5")
    numbers = [message["id"] for message in map(json.loads, first.stdout.splitlines()) if "id" in message]
    assert sorted(numbers) == list(range(EXCHANGES))
    assert numbers != sorted(numbers)
    again = held(tmp_path, "again", "--fault-from", "first")
    assert struck(tmp_path, "again") == struck(tmp_path, "first")
    assert sorted(again.stdout.splitlines()) == sorted(first.stdout.splitlines())
    soon = held(tmp_path, "soon", *wrapped("reorder=1ms"))
    assert sorted(m["id"] for m in map(json.loads, soon.stdout.splitlines()) if "id" in m) == list(range(EXCHANGES))


def test_wrong_words_spawn_nothing(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    touch = [sys.executable, "-c", f"open({str(mark)!r}, 'w')"]
    for words, said in (
        (["--fault", "drpo"], "did you mean drop"),
        (["--fault", "status"], "pipes have none"),
        (["--fault-from", "nothing"], "nothing"),
    ):
        ran = run("stdio", "--dir", str(tmp_path), *words, "--", *touch)
        assert ran.status == 2
        assert said in ran.err
        assert "Traceback" not in ran.err
    assert not mark.exists()
