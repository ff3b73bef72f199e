"""Standard streams that are missing, and terminals that say strange things about their width."""

import json
import subprocess
from pathlib import Path

import pytest

from mcpsniff.transcript.safe import cells
from tests.capture.capture_files import save
from tests.cli.running import COMMAND, environment, on_terminal, run
from tests.sessions import end, records
from tests.transcript.golden import SESSION

NAME = "time-20261129T100000.000Z-1.mcpcap"
READERS = [
    ["show", NAME],
    ["show", NAME, "--format", "markdown"],
    ["show", NAME, "--format", "json"],
    ["list", "--dir", "."],
    ["list", "--dir", ".", "--json"],
    ["explain"],
    ["explain", "MCP101"],
    ["demo", "--dir", "demo"],
    ["--help"],
    ["show", "--help"],
    ["--version"],
]


def without(folder: Path, streams: str, *words: str) -> subprocess.CompletedProcess[bytes]:
    """Run with the standard streams closed that ``streams`` closes in a shell's words."""
    if not (folder / NAME).exists():
        save(folder, NAME, SESSION)
    script = f'exec "$@" {streams}'
    return subprocess.run(
        ["sh", "-c", script, "sh", *COMMAND, *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=environment(),
        cwd=folder,
        timeout=60,
    )


@pytest.mark.parametrize("words", READERS, ids=" ".join)
@pytest.mark.parametrize("streams", [">&-", "0<&- >&- 2>&-"])
def test_without_an_output_it_ends_quietly(tmp_path: Path, streams: str, words: list[str]) -> None:
    done = without(tmp_path, streams, *words)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.parametrize("words", READERS, ids=" ".join)
def test_without_an_error_output_the_output_is_the_same(tmp_path: Path, words: list[str]) -> None:
    done = without(tmp_path, "2>&- 0<&-", *words)
    assert done.returncode == 0
    if "demo" not in words:
        assert done.stdout == without(tmp_path, "", *words).stdout != b""


def test_the_file_of_an_option_is_written_without_an_output(tmp_path: Path) -> None:
    done = without(tmp_path, ">&-", "show", NAME, "--format", "json", "-o", "out.json")
    assert (done.returncode, done.stderr) == (0, b"")
    assert [json.loads(line) for line in (tmp_path / "out.json").read_text().splitlines()]


def test_a_missing_input_is_an_empty_capture(tmp_path: Path) -> None:
    done = without(tmp_path, "0<&-", "show", "-")
    assert (done.returncode, done.stdout) == (3, b"")
    assert done.stderr.count(b"\n") == 1
    assert b"empty" in done.stderr


@pytest.mark.parametrize("words", [["show", "nothing"], ["shwo"], ["stdio"], ["stdio", "--nonsense", "--", "true"]])
def test_a_complaint_that_nobody_reads(tmp_path: Path, words: list[str]) -> None:
    done = without(tmp_path, "2>&-", *words)
    assert (done.returncode, done.stdout) == (3 if words[0] == "show" else 2, b"")


def widest(shown: str) -> int:
    """The cells of the widest line, but for that with the path, which is never broken."""
    return max(cells(line) for line in shown.splitlines() if NAME not in line)


@pytest.mark.parametrize(
    ("said", "limit"),
    [
        ("99999999999", 500),
        ("3000000", 500),
        ("0", 100),
        ("-5", 100),
        ("x", 100),
        ("9" * 5000, 100),
        ("²", 100),
        ("1", 20),
    ],
)
@pytest.mark.parametrize("colour", [True, False])
def test_a_strange_width(tmp_path: Path, said: str, limit: int, colour: bool) -> None:
    capture = save(tmp_path, NAME, SESSION)
    env = {"COLUMNS": said, "LINES": said} | ({} if colour else {"NO_COLOR": "1"})
    ran = on_terminal("show", str(capture), "--no-payload", env=env)
    assert ran.status == 0
    assert "initialize" in ran.out
    assert len(ran.out) < 200_000
    if not colour and limit > 20:
        assert widest(ran.out) <= limit


@pytest.mark.parametrize("said", ["99999999999", "0", "1"])
def test_a_strange_width_of_an_explanation(said: str) -> None:
    ran = on_terminal("explain", env={"COLUMNS": said})
    assert ran.status == 0
    assert "MCP101" in ran.out


def test_a_terminal_without_a_width_has_the_usual_one(tmp_path: Path) -> None:
    capture = save(tmp_path, NAME, SESSION)
    ran = on_terminal("show", str(capture), columns=0, env={"NO_COLOR": "1"})
    assert widest(ran.out) <= 80
    assert run("explain").status == 0


SAID = "\x9b31m\x7f\x85\u202e\u2028\u2066\U000e0041 é \U0001f469\u200d\U0001f4bb"
CALL = json.dumps({"jsonrpc": "2.0", "id": SAID, "method": SAID, "params": {SAID: SAID}}, ensure_ascii=False)
AS_JSON = [
    ["show", NAME, "--format", "json"],
    ["show", NAME, "--format", "json", "--payload"],
    ["show", NAME, "--format", "json", "--at", "2"],
    ["show", NAME, NAME.replace("time", "b"), "--format", "json", "--payload"],
    ["tail", NAME, "--format", "json", "--payload", "--from", "start"],
    ["list", "--dir", ".", "--json"],
]


@pytest.mark.parametrize("words", AS_JSON, ids=" ".join)
def test_json_on_a_terminal_means_the_same_and_does_nothing_to_it(
    tmp_path: Path, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said = [*records(("c2s", f"{CALL[:-1]}\t}}"), ("s2c", SAID), ("err", SAID)), *end(20_000)]
    for name in (NAME, NAME.replace("time", "b")):
        save(tmp_path, name, said, argv=[SAID], label=SAID, cwd=SAID)
    monkeypatch.chdir(tmp_path)
    piped, shown = run(*words), on_terminal(*words)
    assert (piped.status, shown.status) == (0, 0)
    assert [json.loads(line) for line in piped.out.split("\n")[:-1]] == [
        json.loads(line) for line in shown.out.split("\n")[:-1]
    ]
    assert SAID in piped.out
    assert not set("\x9b\x7f\x85\u202e\u2028\u2066\U000e0041") & set(shown.out)
    assert "é \U0001f469\u200d\U0001f4bb" in shown.out
