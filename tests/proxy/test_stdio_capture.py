"""Where a wrapped session's capture goes, who may read it, and that no trouble with it costs the session."""

import json
import os
import resource
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.proxy.wrapped import CASES, PATIENCE, STDIO, Captured, Wrapped, environment

COMMAND = [*STDIO, "--no-transcript"]


def run(*words: str, given: bytes = b"", **env: str) -> subprocess.CompletedProcess[bytes]:
    """Run a whole session of the wrapper at once."""
    return subprocess.run(
        [*COMMAND, *words], input=given, capture_output=True, env=environment(**env), timeout=PATIENCE
    )


def modes(folder: Path) -> set[int]:
    return {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}


def assert_in_place(capture: Captured, channel: int, sent: bytes) -> None:
    """What is recorded of a channel is what passed, each piece after the gaps that are owned up to before it."""
    at = 0
    for _, kind, number, body in capture.records:
        if number != channel:
            continue
        if kind == "gap":
            at += body["bytes"]
        elif kind == "chunk":
            data = body.encode()
            assert sent[at : at + len(data)] == data
            at += len(data)


def test_b109_writers_under_one_name_get_a_file_each(tmp_path: Path) -> None:
    frames = 150
    pad = "p" * (20 << 10)
    script = f"""
import sys
for n in range({frames}):
    sys.stdout.write('{{"jsonrpc":"2.0","method":"n","params":{{"n":%d,"pad":"{pad}"}}}}\\n' % n)
"""
    (tmp_path / "server.py").write_text(script)
    words = [*COMMAND, "-o", str(tmp_path / "same.mcpcap"), "--", sys.executable, str(tmp_path / "server.py")]
    running = [
        subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment()
        )
        for _ in range(8)
    ]
    for process in running:
        process.communicate(timeout=60)
        assert process.returncode == 0
    captures = [Captured(path) for path in tmp_path.glob("*.mcpcap")]
    assert len(captures) == 8
    good = [json.loads(line)["params"]["n"] for capture in captures for line in capture.data(1).splitlines()]
    assert sorted(good) == sorted(list(range(frames)) * 8)
    assert sum(capture.damaged for capture in captures) == 0
    assert len({capture.header["run"] for capture in captures}) == 8


def test_b111_a_full_disk_during_the_capture(tmp_path: Path) -> None:
    """No file may grow beyond 1 MiB; 20 MiB pass, then the session ends well."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    frames = [b'{"jsonrpc":"2.0","id":%d,"result":"%s"}\n' % (n, b"x" * 9950) for n in range(2097)]
    with Wrapped(tmp_path, ["cat"], preexec=limit) as wrapped:
        sender = wrapped.send_aside(*frames)
        assert wrapped.read_all() == b"".join(frames)
        sender.join()
        assert wrapped.wait() == 0
    said = wrapped.stderr.decode().splitlines()
    assert len([line for line in said if "suspended" in line]) == CASES["B111"]["expect"]["warnings"]
    capture = wrapped.capture()
    assert capture.damaged <= CASES["B111"]["expect"]["max_damaged"]
    assert capture.path.stat().st_size <= 1 << 20
    assert_in_place(capture, 0, b"".join(frames))
    assert_in_place(capture, 1, b"".join(frames))
    (told,) = [line for line in said if "are not in the capture" in line]
    kept = len(capture.data(0)) + len(capture.data(1))
    assert f" {2 * len(b''.join(frames)) - kept} bytes" in told


def test_a_folder_that_cannot_be_written_costs_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = run("--dir", str(tmp_path / "file" / "folder"), "--", "sh", "-c", "cat; exit 3", given=b"through\n")
    assert (done.stdout, done.returncode) == (b"through\n", 3)
    assert len(done.stderr.splitlines()) == 1
    assert str(tmp_path / "file") in done.stderr.decode()


def test_quiet_says_nothing_and_the_usual_line_says_where(tmp_path: Path) -> None:
    assert run("--quiet", "--dir", str(tmp_path / "a"), "--", "true").stderr == b""
    said = run("--dir", str(tmp_path / "b"), "--", "true").stderr.decode()
    (path,) = (tmp_path / "b").iterdir()
    assert said == f"mcpsniff: recording to {path}\n"


@pytest.mark.parametrize(
    "label", ["../../outside", "/abs", "a/b", "..", "", "nul\u0001x", "CON", "a:b", "n" * 300, "-x", "évil\u202e"]
)
def test_b142_no_label_leaves_the_folder(tmp_path: Path, label: str) -> None:
    folder = tmp_path / "deep" / "captures"
    done = run("--dir", str(folder), "--label=" + label, "--", "true")
    assert done.returncode == 0
    (path,) = folder.iterdir()
    assert [name for name in os.listdir(tmp_path) if name != "deep"] == []
    assert len(os.listdir(tmp_path / "deep")) == 1
    assert len(path.name) < 255
    assert Captured(path).header["label"] == path.name.rsplit("-", 2)[0]


def test_b142_links_are_not_followed_for_writing(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    folder = tmp_path / "captures"
    folder.mkdir(mode=0o700)
    link = folder / "named.mcpcap"
    link.symlink_to(outside / "target")
    assert run("-o", str(link), "--", "true").returncode == 0
    assert list(outside.iterdir()) == []
    assert link.is_symlink()
    assert len(list(folder.iterdir())) == 2


def test_b150_captures_are_private_from_the_start(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "captures"
    words = [*COMMAND, "--dir", str(folder), "--", "true"]
    before = os.umask(0o022)
    try:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, env=environment())
    finally:
        os.umask(before)
    assert done.returncode == 0
    assert modes(folder) == {0o600}
    assert {stat.S_IMODE(path.stat().st_mode) for path in (folder, folder.parent)} == {0o700}


def test_b150_an_open_folder_is_warned_about(tmp_path: Path) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o755)
    done = run("--dir", str(folder), "--", "true")
    assert done.returncode == 0
    assert modes(folder) == {0o600}
    assert f"{folder}" in done.stderr.decode().splitlines()[0]
    assert "0755" in done.stderr.decode().splitlines()[0]


def test_the_header_tells_what_ran(tmp_path: Path) -> None:
    with Wrapped(tmp_path, ["sh", "-c", "echo $$; pwd"]) as wrapped:
        pid, folder = wrapped.read_all().decode().split()
        assert wrapped.wait() == 0
    header = wrapped.capture().header
    assert header["argv"] == ["sh", "-c", "echo $$; pwd"]
    assert (header["pid"], header["cwd"]) == (int(pid), folder)
    assert (header["mcpcap"], header["part"], header["transport"]) == (1, 1, "stdio")
    assert header["by"].startswith("mcpsniff ")
    assert header["started"].endswith("Z")
    opens = [record[2:] for record in wrapped.capture().records if record[1] == "open"]
    assert opens == [
        [0, {"kind": "stdin", "dir": "c2s", "conn": 0}],
        [1, {"kind": "stdout", "dir": "s2c", "conn": 0, "of": 0}],
        [2, {"kind": "stderr", "dir": "s2c", "conn": 0}],
    ]


def test_a_capture_that_is_removed_while_it_is_written_is_said_at_the_end(tmp_path: Path) -> None:
    removes = 'until ls "$0"/*.mcpcap >/dev/null 2>&1; do sleep 0.05; done; sleep 0.2; rm "$0"/*.mcpcap; exit 5'
    ran = run("--quiet", "--dir", str(tmp_path), "--", "sh", "-c", removes, str(tmp_path))

    assert ran.returncode == 5
    assert b"was removed or moved while it was written" in ran.stderr
    assert list(tmp_path.iterdir()) == []
