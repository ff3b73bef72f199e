"""`mcpsniff prune`: what goes, what stays, and who is asked."""

import fcntl
import os
import pty
import re
import subprocess
from pathlib import Path

import pytest

from mcpsniff.cli.ages import seconds
from mcpsniff.errors import UsageError
from tests.capture.capture_files import save
from tests.cli.listing import saved
from tests.cli.running import COMMAND, environment, run
from tests.sessions import records


def left(folder: Path) -> list[str]:
    return sorted(path.name.split("-")[0].removesuffix(".mcpcap") for path in folder.iterdir())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Five captures, ``d0`` of now to ``d40``."""
    made = tmp_path / "captures"
    for days in (0, 1, 6, 8, 40):
        saved(made, f"d{days}", days=days)
    return made


@pytest.mark.parametrize(
    ("words", "stay"),
    [
        (["--older-than", "7d"], ["d0", "d1", "d6"]),
        (["--older-than", "30h"], ["d0", "d1"]),
        (["--keep", "2"], ["d0", "d1"]),
        (["--keep", "0"], []),
        (["--keep", "9"], ["d0", "d1", "d40", "d6", "d8"]),
        (["--older-than", "7d", "--keep", "4"], ["d0", "d1", "d6", "d8"]),
        (["--older-than", "7d", "--keep", "1"], ["d0", "d1", "d6"]),
        (["--older-than", "7d", "--label", "d40"], ["d0", "d1", "d6", "d8"]),
        (["--keep", "0", "--label", "d6"], ["d0", "d1", "d40", "d8"]),
        (["--keep", "1", "--label", "d6"], ["d0", "d1", "d40", "d6", "d8"]),
    ],
)
def test_what_goes(folder: Path, words: list[str], stay: list[str]) -> None:
    tried = run("prune", *words, "--dry-run", "--dir", str(folder))
    assert tried.status == 0
    assert len(left(folder)) == 5
    done = run("prune", *words, "--yes", "--dir", str(folder))
    assert (done.status, done.err) == (0, "")
    assert left(folder) == stay
    gone = 5 - len(stay)
    if gone:
        assert re.search(rf"^Would remove {gone} captures?, [\d.]+ KB\.$", tried.out, re.MULTILINE)
        assert re.search(rf"^Removed {gone} captures?, [\d.]+ KB freed\.$", done.out, re.MULTILINE)
        assert len(done.out.splitlines()) == gone + 1
    else:
        assert tried.out == done.out == f"Nothing to remove in {folder}.\n"


def test_parts_and_transcripts_go_along_and_nothing_else(tmp_path: Path) -> None:
    save(tmp_path, "a.mcpcap", records(("c2s", "{}")))
    save(tmp_path, "a.0002.mcpcap", records(("c2s", "{}"))[3:], part=2)
    for name in ("a.md", "a.html", "a.txt", "b.md", "a.0002.md", "notes.mcpcap"):
        (tmp_path / name).write_text("x", encoding="utf-8")
    ran = run("prune", "--keep", "0", "--yes", "--dir", str(tmp_path))
    assert ran.status == 0
    assert "4 files" in ran.out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.0002.md", "a.txt", "b.md", "notes.mcpcap"]


def test_what_is_being_written_stays(folder: Path) -> None:
    [path] = folder.glob("d40-*")
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        ran = run("prune", "--keep", "0", "--yes", "--dir", str(folder))
    assert ran.status == 0
    assert left(folder) == ["d40"]
    assert "is being written, and stays" in ran.err


def test_links_are_not_followed(tmp_path: Path, folder: Path) -> None:
    real = saved(tmp_path / "elsewhere", "real", days=100)
    (folder / "link-20200101T000000.000Z-1.mcpcap").symlink_to(real)
    [old] = folder.glob("d40-*")
    beside = old.with_suffix(".md")
    precious = tmp_path / "precious.md"
    precious.write_text("mine", encoding="utf-8")
    beside.symlink_to(precious)
    ran = run("prune", "--keep", "0", "--yes", "--dir", str(folder))
    assert ran.status == 0
    assert "is a link" in ran.err
    assert real.exists()
    assert precious.read_text(encoding="utf-8") == "mine"
    assert sorted(path.name[:4] for path in folder.iterdir()) == sorted([beside.name[:4], "link"])


def test_a_part_of_another_run_keeps_the_capture(tmp_path: Path) -> None:
    """Whatever was put beside a capture under the name of a part: it is not ours to remove."""
    save(tmp_path, "a.mcpcap")
    save(tmp_path, "a.0002.mcpcap", part=2, run="01J000000000000000000OTHER")
    ran = run("prune", "--keep", "0", "--yes", "--dir", str(tmp_path))
    assert (ran.status, len(list(tmp_path.iterdir()))) == (0, 2)
    assert "stays" in ran.err


def test_without_a_terminal_nobody_is_asked(folder: Path) -> None:
    ran = run("prune", "--keep", "1", "--dir", str(folder))
    assert ran.status == 2
    assert "say --yes" in ran.err
    assert len(left(folder)) == 5


@pytest.mark.parametrize(("answer", "stay"), [(b"y\n", 1), (b"n\n", 5), (b"\n", 5)])
def test_on_a_terminal_it_asks(folder: Path, answer: bytes, stay: int) -> None:
    ours, theirs = pty.openpty()
    os.write(ours, answer)
    done = subprocess.run(
        [*COMMAND, "prune", "--keep", "1", "--dir", str(folder)],
        stdin=theirs,
        capture_output=True,
        env=environment(),
        timeout=60,
    )
    os.close(theirs)
    os.close(ours)
    assert done.returncode == 0
    assert "Remove 4 captures, " in done.stdout.decode()
    assert ("Nothing removed." in done.stdout.decode()) == (stay == 5)
    assert len(left(folder)) == stay


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "needs --older-than AGE, --keep N or both"),
        (["--label", "x"], "needs --older-than AGE"),
        (["--keep", "-1"], "--keep"),
        (["--keep", "many"], "--keep"),
        (["--older-than", "7"], "did you mean 7d?"),
        (["--older-than", "7days"], "did you mean 7d?"),
        (["--older-than", "2 Weeks"], "did you mean 2w?"),
        (["--older-than", "6m"], "did you mean 6min, or months (180d)?"),
        (["--older-than", "3months"], "did you mean 90d?"),
        (["--older-than", "1y"], "did you mean 365d?"),
        (["--older-than", "-7d"], "is no age"),
        (["--older-than", ""], "nothing is no age"),
        (["--older-than", "\x1b[31m"], "\\x1b[31m is no age"),
        (["--older-than", "٣d"], "is no age"),
        (["--older-than", "99999999w"], "longer than a hundred years"),
        (["--older-than", "9" * 5000 + "d"], "is no age"),
    ],
)
def test_wrong_usage(folder: Path, words: list[str], says: str) -> None:
    ran = run("prune", *words, "--yes", "--dir", str(folder))
    assert (ran.status, ran.out) == (2, "")
    assert says in ran.err
    assert ran.err.count("\n") == 1
    assert len(left(folder)) == 5


def test_a_label_that_nobody_has(folder: Path) -> None:
    ran = run("prune", "--keep", "0", "--label", "nobody", "--yes", "--dir", str(folder))
    assert (ran.status, len(left(folder))) == (0, 5)
    assert "no capture with the label nobody" in ran.err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may remove everything")
def test_a_folder_that_cannot_be_changed(folder: Path) -> None:
    folder.chmod(0o500)
    try:
        ran = run("prune", "--keep", "4", "--yes", "--dir", str(folder))
    finally:
        folder.chmod(0o700)
    assert ran.status == 3
    assert "cannot remove d40-" in ran.err


def test_a_failure_is_said_and_the_rest_goes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mcpsniff.cli import main, prune

    unlink = os.unlink

    def refuse(path: str) -> None:
        if "/d8-" in path:
            raise PermissionError(1, "Operation not permitted", path)
        unlink(path)

    monkeypatch.setattr(prune.os, "unlink", refuse)
    assert main.run(["prune", "--keep", "2", "--yes", "--dir", str(folder)]) == 3
    assert left(folder) == ["d0", "d1", "d8"]


@pytest.mark.parametrize(
    ("text", "means"),
    [("90s", 90), ("30min", 1800), ("12h", 43200), ("7d", 604800), ("2w", 1209600), ("1.5h", 5400), (" 7 d ", 604800)],
)
def test_ages(text: str, means: float) -> None:
    assert seconds(text) == means
    with pytest.raises(UsageError):
        seconds(text + "x")


def test_a_link_does_not_stand_in_for_a_capture_that_is_kept(folder: Path) -> None:
    newest = next(path for path in folder.iterdir() if path.name.startswith("d0-"))
    for number in range(3):
        (folder / f"link{number}.mcpcap").symlink_to(newest)
    done = run("prune", "--keep", "2", "--yes", "--dir", str(folder))

    assert done.status == 0
    assert left(folder) == ["d0", "d1", "link0", "link1", "link2"]


def test_a_folder_that_is_not_there_is_no_success(tmp_path: Path) -> None:
    done = run("prune", "--keep", "0", "--dir", str(tmp_path / "nothing"))

    assert done.status == 3
    assert "no such folder" in done.err
