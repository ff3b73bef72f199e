"""The end of `mcpsniff http`: what it leaves is there when it has ended, and named."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from mcpsniff.cli.options import HTTP, default
from mcpsniff.proxy import recording
from mcpsniff.proxy.recording import Recording
from mcpsniff.proxy.remains import account_for
from tests.proxy.relayed import Relay, Upstream, echo, post
from tests.proxy.wrapped import wait_for

SILENT = "http://127.0.0.1:9"
MISSING = "http://127.0.0.1:8"


def said(relay: Relay) -> list[str]:
    """The last words on stderr, but for those that only a slow machine has."""
    _, _, end = relay.err.decode().rpartition("in the place of ")
    return [line for line in end.splitlines()[1:] if not line.startswith("mcpsniff: writing the transcript")]


def in_place_of_nice(folder: Path, script: str) -> str:
    """Return a PATH on which ``script`` stands for the program that the writing of transcripts begins with."""
    program = folder / "bin" / "nice"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return f"{program.parent}{os.pathsep}{os.environ['PATH']}"


def recorded(folder: Path) -> Recording:
    """A short session, stored."""
    values = {option.name: default(option) for option in HTTP}
    made = Recording("http", (), {**values, "dir": str(folder / "captures"), "quiet": True, "label": "x"})
    made.start(upstream=SILENT)
    made.recorder.mark("open", 0, {"kind": "tcp", "dir": "c2s", "conn": 0})
    made.finish()
    return made


def test_capture_and_transcript_are_there_and_named(tmp_path: Path) -> None:
    with Upstream(echo) as upstream, Relay(tmp_path, upstream.url, quiet=False, transcript=True) as relay:
        relay.ask(post(b"hello"))
        assert relay.stop(signal.SIGINT) == 0
        transcripts = list(relay.folder.glob("*.md"))
    (capture,) = relay.folder.glob("*.mcpcap")
    assert transcripts == [capture.with_suffix(".md")]
    assert said(relay)[-2:] == [f"mcpsniff: recorded in {capture}", f"mcpsniff: transcript in {transcripts[0]}"]


def test_of_several_upstreams_each_is_named(tmp_path: Path) -> None:
    with Relay(tmp_path, f"a={SILENT}", f"b={MISSING}", quiet=False, transcript=True) as relay:
        assert wait_for(lambda: len(relay.addresses()) == 2)
        assert relay.stop(signal.SIGINT) == 0
        transcripts = {name: str(next(relay.folder.glob(f"{name}-*.md"))) for name in "ab"}
    captures = {name: path.removesuffix(".md") + ".mcpcap" for name, path in transcripts.items()}
    words = [line for line in said(relay) if " in /" in line]
    assert words == [
        *(f"mcpsniff: {name}: recorded in {path}" for name, path in captures.items()),
        *(f"mcpsniff: {name}: transcript in {path}" for name, path in transcripts.items()),
    ]


def test_quietly_it_is_waited_for_too(tmp_path: Path) -> None:
    with Relay(tmp_path, SILENT, transcript=True) as relay:
        assert relay.stop() == 0
        assert len(list(relay.folder.glob("*.md"))) == 1
    assert relay.err == b""


def test_without_a_transcript_the_capture_is_named(tmp_path: Path) -> None:
    with Relay(tmp_path, SILENT, quiet=False) as relay:
        assert relay.stop() == 0
    (capture,) = relay.folder.iterdir()
    assert said(relay)[-1] == f"mcpsniff: recorded in {capture}"


def test_a_second_signal_ends_the_waiting(tmp_path: Path) -> None:
    hold = tmp_path / "hold"
    hold.touch()
    path = in_place_of_nice(tmp_path, f"while [ -e '{hold}' ]; do sleep 0.1; done")
    try:
        with Relay(tmp_path, SILENT, quiet=False, transcript=True, env={"PATH": path}) as relay:
            relay.process.send_signal(signal.SIGINT)
            assert wait_for(lambda: b"writing the transcript; Ctrl-C ends the waiting" in relay.err)
            assert relay.process.poll() is None
            assert relay.stop(signal.SIGINT) == 0
    finally:
        hold.unlink()
    assert "mcpsniff: the transcript is still being written, to /" in said(relay)[-1]


def never(_seconds: float) -> bool:
    """Look once more at once."""
    return False


@pytest.mark.parametrize(
    ("until", "wait"), [(-1.0, never), (60.0, lambda _: True)], ids=["too slow", "nobody wants to wait"]
)
def test_a_transcript_that_takes_longer_is_told_even_quietly(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], until: float, wait: Callable[[float], bool]
) -> None:
    made = recorded(tmp_path)
    account_for({"x": made}, wait, time.monotonic() + until, quiet=True)
    assert made.path
    target = made.path.replace(".mcpcap", ".md")
    assert capfd.readouterr().err == f"mcpsniff: the transcript is still being written, to {target}\n"
    assert made.transcriber
    os.waitpid(made.transcriber, 0)
    assert Path(target).exists()


def test_a_transcript_that_fails_is_told_even_quietly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", in_place_of_nice(tmp_path, "exit 3"))
    made = recorded(tmp_path)
    account_for({"x": made}, never, time.monotonic() + 60, quiet=True)
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith("mcpsniff: no transcript: writing /")
    assert line.endswith(f"failed; mcpsniff show {made.path} tells why")


def test_no_transcript_of_a_huge_capture_is_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(recording, "LARGEST", 0)
    made = recorded(tmp_path)
    account_for({"x": made}, never, 0.0, quiet=False)
    first, second = capfd.readouterr().err.splitlines()
    assert first == f"mcpsniff: recorded in {made.path}"
    assert "no transcript of " in second
    assert "mcpsniff show --format markdown -o FILE" in second
    assert made.transcriber is None


def test_a_capture_that_was_removed_is_not_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    made = recorded(tmp_path)
    assert made.transcriber
    os.waitpid(made.transcriber, 0)
    made.is_kept = False
    account_for({"x": made}, never, 0.0, quiet=False)
    assert capfd.readouterr().err == ""
