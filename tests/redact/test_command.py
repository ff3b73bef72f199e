"""`mcpsniff redact` as a command: what it refuses, says, and leaves."""

import os
import stat
from pathlib import Path

import pytest

from mcpsniff.capture.reader import open_capture
from mcpsniff.cli.main import run
from mcpsniff.replay.resend.removed import is_redacted
from mcpsniff.transcript.safe import visible
from tests.capture.capture_files import save
from tests.redact.planted import REQUEST, RESULT, events, pipes

MAIL = "bob@example.com"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    said = [(0, (REQUEST % (1, MAIL)).encode() + b"\n"), (1, (RESULT % (1, "of x " + MAIL)).encode() + b"\n")]
    return save(tmp_path, "a.mcpcap", pipes(*said), transport="stdio", cwd="/srv")


def test_it_says_what_was_done_and_touches_nothing(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before, out = source.read_bytes(), tmp_path / "out.mcpcap"
    out.write_text("old")
    out.chmod(0o644)
    os.umask(0o022)
    assert run(["redact", str(source), "-o", str(out)]) == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == f"mcpsniff: replaced 1 value at 2 places (1 email): {out}\n"
    assert source.read_bytes() == before
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    assert MAIL.encode() not in out.read_bytes()
    assert sorted(tmp_path.iterdir()) == [source, out]
    assert run(["show", str(out)]) == 0
    head = capsys.readouterr().out
    assert "redacted" in head.split("command")[0]
    assert "1 value at 2 places (1 email)" in head
    assert "redacted-email-1@example.invalid" in head
    assert len(events(out)) == len(events(source))


def test_what_is_left_is_refused_and_told_without_the_value(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    secret = "hunter2-correct-horse"
    records = pipes((2, f"{secret} and {secret[::-1]}\n".encode()))
    save(tmp_path, "b.mcpcap", records, transport="stdio")
    out = tmp_path / "out.mcpcap"
    out.write_text("old")
    assert run(["redact", str(tmp_path / "b.mcpcap"), "-o", str(out), "--value", secret]) == 3
    said = capsys.readouterr().err
    assert said.startswith("mcpsniff: nothing was written: after redacting, something of what was to be removed")
    assert "  channel 2, byte 21 (backwards)\n" in said
    assert said.endswith("name these places by --key or --path, or what is around them by --pattern (docs/redact.md)\n")
    assert secret not in said
    assert secret[::-1] not in said
    assert out.read_text() == "old"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["a.mcpcap", "b.mcpcap", "out.mcpcap"]


@pytest.mark.parametrize(
    ("words", "status", "why"),
    [
        (["{source}"], 2, "missing option '-o'"),
        (["{source}", "-o", "{source}"], 2, "is the capture itself, and would be overwritten"),
        (["{source}", "-o", "-"], 2, "is no file: what is written must be read again"),
        (["{source}", "-o", "/dev/null"], 2, "is no file"),
        (["{source}", "-o", "{folder}"], 2, "is no file"),
        (["{source}", "-o", "{folder}/no/x"], 3, "cannot write"),
        (["{folder}/none.mcpcap", "-o", "{folder}/x"], 3, "no such capture"),
        (["{source}", "-o", "{folder}/x", "--value", ""], 2, "--value is empty"),
        (["{source}", "-o", "{folder}/x", "--preset", "x"], 2, "no such preset: x"),
    ],
)
def test_it_refuses(
    words: list[str], status: int, why: str, *, source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [word.format(source=source, folder=tmp_path) for word in words]
    before = source.read_bytes()
    assert run(["redact", *given]) == status
    said = capsys.readouterr().err
    assert why in said
    assert said.count("\n") == 1
    assert source.read_bytes() == before
    assert list(tmp_path.iterdir()) == [source]


def test_a_link_to_the_capture_is_the_capture(source: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(source)
    assert run(["redact", str(source), "-o", str(tmp_path / "link")]) == 2


def test_nothing_to_remove(source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.mcpcap"
    assert run(["redact", str(source), "-o", str(out), "--preset", "none"]) == 0
    assert capsys.readouterr().err == (
        f"mcpsniff: nothing was found that is to be removed: {out} is as the capture was\n"
    )
    assert b'"redacted"' in out.read_bytes()


def test_short_values_are_said_to_be_replaced_only_where_named(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.mcpcap"
    assert run(["redact", str(source), "-o", str(out), "--path", "params.name", "--preset", "none"]) == 0
    said = visible(capsys.readouterr().err.replace("\n", "|"))
    assert "replaced 1 value at 1 place (1 name)" in said
    assert "1 value of them, short or common, only where a rule names them" in said
    assert run(["redact", str(source), "-o", str(out), "--quiet"]) == 0
    assert capsys.readouterr().err == ""


def test_a_capture_that_is_being_recorded_is_refused(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import fcntl

    with source.open("r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        status = run(["redact", str(source), "-o", str(tmp_path / "x")])
    assert status == 3
    assert "is still being recorded: redact it when the session has ended" in capsys.readouterr().err


def test_a_capture_in_which_nothing_was_found_is_not_called_redacted(tmp_path: Path) -> None:
    source = save(tmp_path, "a.mcpcap", pipes((0, (REQUEST % (1, "x")).encode() + b"\n")), transport="stdio")
    out = tmp_path / "out.mcpcap"
    assert run(["redact", str(source), "-o", str(out)]) == 0
    assert open_capture(str(out)).header.redacted is not None
    assert not is_redacted(open_capture(str(out)))
    assert run(["redact", str(source), "-o", ""]) == 2


def test_no_command_brings_a_removed_value_back(
    source: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """B126: what was removed is not in what any other command makes of the redacted capture."""
    out, made = tmp_path / "out.mcpcap", tmp_path / "made"
    assert run(["redact", str(source), "-o", str(out)]) == 0
    request = next(event.n for event in events(out) if getattr(event, "kind", "") == "request")
    for form in ("text", "markdown", "html", "json"):
        assert run(["show", str(out), "--format", form, "--payload", "-o", str(made)]) == 0
        assert MAIL.encode() not in made.read_bytes()
    again = tmp_path / "again.mcpcap"
    for command, status in (
        (["show", str(out), "--at", str(request), "--hex"], 0),
        (["play", str(out), "--speed", "max", "--payload"], 0),
        (["diff", str(source), str(out), "--only", "exchanges"], 1),
        (["resend", str(out), str(request), "--as", "curl", "--to", "http://127.0.0.1:1/mcp"], 0),
        (["resend", str(out), str(request), "--as", "python"], 0),
        (["redact", str(out), "-o", str(again), "--value", "of x"], 0),
    ):
        capfd.readouterr()
        assert run(command) == status, command
        said = capfd.readouterr()
        if command[0] != "diff":  # it shows both captures, and one is the source
            assert MAIL not in said.out + said.err, command
    assert MAIL.encode() not in again.read_bytes()
    assert run(["replay", str(out), "--serve", "http"]) == 3
    assert "redacted" in capfd.readouterr().err
