"""Listing captures and finding the one that is meant."""

import os
from pathlib import Path

import pytest

from mcpsniff.capture.catalog import Found, find, list_captures
from mcpsniff.capture.records import CHUNK, CLOSE, COMMENT, GAP, OPEN, Record
from mcpsniff.errors import CaptureError
from tests.capture.capture_files import SESSION, encoded, save


def stamp(label: str, day: int, pid: int = 7) -> str:
    return f"{label}-202611{day:02}T100000.000Z-{pid}.mcpcap"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "captures"
    path.mkdir(mode=0o700)
    monkeypatch.setenv("MCPSNIFF_DIR", str(path))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.chdir(tmp_path)
    save(path, stamp("time", 3), started="2026-11-03T10:00:00.000000Z", label="time")
    save(path, stamp("git", 2), started="2026-11-02T10:00:00.000000Z", label="git")
    save(path, stamp("time", 1), started="2026-11-01T10:00:00.000000Z", label="time")
    return path


def names(folder: Path) -> list[str]:
    return [Path(entry.path).name for entry in list_captures(str(folder))]


def test_captures_are_listed_by_start_whatever_the_order_of_the_files(folder: Path) -> None:
    os.utime(folder / stamp("time", 1))
    save(folder, "z.mcpcap", started="2026-11-02T12:00:00.000000+05:00", label="zone")
    assert names(folder) == [stamp("time", 1), "z.mcpcap", stamp("git", 2), stamp("time", 3)]
    entry = list_captures(str(folder))[0]
    assert (entry.label, entry.parts, entry.problem) == ("time", 1, None)
    assert entry.size == (folder / stamp("time", 1)).stat().st_size


def test_parts_are_one_entry_and_early_parts_may_be_gone(folder: Path) -> None:
    first = save(folder, "p.mcpcap", SESSION[:3], started="2026-11-04T10:00:00Z")
    second = save(folder, "p.0002.mcpcap", SESSION[3:], started="2026-11-04T10:00:00Z", part=2)
    entry = list_captures(str(folder))[-1]
    assert (entry.path, entry.parts, entry.size) == (str(first), 2, first.stat().st_size + second.stat().st_size)
    first.unlink()
    entry = list_captures(str(folder))[-1]
    assert (entry.path, entry.parts) == (str(second), 1)


def test_what_is_no_capture_is_listed_with_its_problem_or_left_alone(folder: Path) -> None:
    (folder / stamp("bad", 9)).write_bytes(b"hello")
    (folder / "notes.txt").write_text("hello")
    (folder / "folder.mcpcap").mkdir()
    os.mkfifo(folder / "pipe.mcpcap")
    (folder / "link.mcpcap").symlink_to("nowhere")
    bad = [entry for entry in list_captures(str(folder)) if entry.header is None]
    assert [(Path(entry.path).name, entry.label) for entry in bad] == [(stamp("bad", 9), "bad")]
    assert "not a capture" in (bad[0].problem or "")
    assert find(None) == Found(str(folder / stamp("time", 3)), 3), "the newest that can be read"
    assert find("bad").path == str(folder / stamp("bad", 9)), "named, it is opened, and says itself what is wrong"


def test_nothing_means_the_newest_by_start(folder: Path) -> None:
    os.utime(folder / stamp("time", 1), (2**31, 2**31))
    assert find(None) == Found(str(folder / stamp("time", 3)), 3)


def test_a_label_means_its_newest(folder: Path) -> None:
    assert find("time") == Found(str(folder / stamp("time", 3)), 2, "called time")
    assert find("git") == Found(str(folder / stamp("git", 2)), 1, "called git")
    assert find("time").said == "the newest of 2 called time"
    assert find("git").said == "the only one called git"
    assert find(None).said == "the newest of 3"
    for name in ("gitlab", "legit"):
        save(folder, stamp(name, 3), [], started="2026-11-03T10:00:00Z", label=name)
    assert find("git").said == "the only one called git; 2 more only contain that name"
    assert find("gitlab").said == "the only one called gitlab"


STDIO = [Record(0, OPEN, n, {"kind": kind, "dir": "s2c", "conn": 0}) for n, kind in enumerate(["stdin", "stdout"])]
CAME_AND_WENT = [
    Record(0, OPEN, 0, {"kind": "tcp", "dir": "c2s", "conn": 0}),
    Record(5, CLOSE, 0, {"how": "eof"}),
]
UNUSED = {"text": "nothing is recorded: no client used the proxy; what was said past it is unknown", "by": "mcpsniff"}
REFUSED = {"text": "a client refused mcpsniff's certificate for mcp.example (unknown ca)", "by": "mcpsniff"}


@pytest.mark.parametrize("records", [[], STDIO, CAME_AND_WENT, [Record(9, COMMENT, None, UNUSED)]])
def test_the_newest_is_the_newest_with_something_in_it_for_who_wants_to_read(
    folder: Path, records: list[Record]
) -> None:
    def means(what: str | None) -> Found:
        return find(what, even_without_content=False)

    newest = save(folder, stamp("time", 4), records, started="2026-11-04T10:00:00Z", label="time")
    empty = folder / stamp("time", 5)
    empty.touch()
    assert means(None) == Found(str(folder / stamp("time", 3)), 4, "", 1)
    assert means(None).said == "the newest of 4 but for a newer one, where nothing was recorded"
    save(folder, stamp("time", 6), records, started="2026-11-06T10:00:00Z", label="time")
    assert means("time").said == "the newest of 4 called time but for 2 newer ones, where nothing was recorded"
    assert find("time").path == str(folder / stamp("time", 6)), "what runs is followed from its beginning"
    assert means(newest.name).path == str(newest), "named, it is meant"
    for name in (stamp("git", 2), stamp("time", 1), stamp("time", 3)):
        (folder / name).unlink()
    assert means(None) == Found(str(folder / stamp("time", 6)), 2)
    for path in folder.glob("*.mcpcap"):
        if path != empty:
            path.unlink()
    with pytest.raises(CaptureError, match=r"no capture in .* can be read: `mcpsniff list` says why"):
        means(None)


@pytest.mark.parametrize(
    "record",
    [
        Record(1, CHUNK, 0, b"x"),
        Record(1, OPEN, 0, {"kind": "http-request", "dir": "c2s", "conn": 0}),
        Record(1, CLOSE, 1, {"how": "exit", "status": 1}),
        Record(1, CLOSE, 1, {"how": "error", "error": "not found", "status": 127}),
        Record(1, GAP, 0, {"bytes": 3, "why": "disk"}),
        Record(1, COMMENT, None, REFUSED),
        Record(1, COMMENT, None, {**UNUSED, "by": "somebody"}),
    ],
)
def test_whatever_was_recorded_is_something(folder: Path, record: Record) -> None:
    newest = save(folder, stamp("x", 8), [*STDIO, record], started="2026-11-08T10:00:00Z", label="x")
    assert find(None, even_without_content=False) == Found(str(newest), 4)
    newest.write_bytes(encoded([], started="2026-11-08T10:00:00Z", label="x") + b"torn")
    assert find(None, even_without_content=False).path == str(newest), "damage is something, too"


def test_a_part_of_a_label_will_do_and_is_said_to_be_one(folder: Path) -> None:
    """`uvx mcp-server-fetch` is labelled mcp-server-fetch, and everybody calls it fetch."""
    server = save(folder, stamp("x", 8), started="2026-11-08T10:00:00Z", label="mcp-server-fetch")
    assert find("fetch") == Found(str(server), 1, "whose label contains fetch")
    assert find("mcp-serv").said == "the only one whose label begins with mcp-serv"
    begins = save(folder, stamp("y", 6), started="2026-11-06T10:00:00Z", label="fetcher")
    assert find("fetch").path == str(begins), "the beginning of a label goes before its middle"
    exact = save(folder, stamp("z", 4), started="2026-11-04T10:00:00Z", label="fetch")
    assert find("fetch").path == str(exact), "and the whole label before both"
    named = save(folder, "etch.mcpcap", started="2026-11-01T10:00:00Z", label="other")
    assert find("etch") == Found(str(named), 0), "a file's name goes before parts of labels"
    with pytest.raises(CaptureError):
        find("")


def test_what_is_shown_of_a_name_is_safe(folder: Path) -> None:
    save(folder, stamp("y", 6), started="2026-11-06T10:00:00Z", label="a\x1b[1mb")
    assert find("\x1b[1m").said == "the only one whose label contains \\x1b[1m"


def test_a_path_is_itself_and_a_label_wins_over_a_folder_of_that_name(folder: Path, tmp_path: Path) -> None:
    save(tmp_path, "here.mcpcap")
    (tmp_path / "time").mkdir()
    assert find("here.mcpcap") == Found("here.mcpcap", 0)
    assert find("./gone.mcpcap") == Found("./gone.mcpcap", 0)
    assert find("time").path == str(folder / stamp("time", 3))


def test_a_label_wins_over_a_file_of_that_name_that_is_no_capture(folder: Path, tmp_path: Path) -> None:
    """The file that was imported lies where it lay, and the capture of it is called as it is."""
    foreign = tmp_path / "time"
    foreign.write_bytes(b"7:version;")
    found = find("time")
    assert found.path == str(folder / stamp("time", 3))
    assert found.said == "the newest of 2 called time; the file time cannot be read as a capture"
    foreign.rename(tmp_path / "tim")
    assert find("tim") == Found("tim", 0), "part of a label is not enough: it is the file that is meant"
    save(tmp_path, "git")
    assert find("git") == Found("git", 0), "a capture is what its path says"
    (tmp_path / stamp("time", 1)).write_bytes(b"hello")
    assert find(stamp("time", 1)) == Found(stamp("time", 1), 0)


def test_a_name_or_its_beginning_will_do(folder: Path) -> None:
    assert find(stamp("time", 1)).path == str(folder / stamp("time", 1))
    assert find(stamp("time", 1).removesuffix(".mcpcap")).path == str(folder / stamp("time", 1))
    assert find("time-20261101").path == str(folder / stamp("time", 1))
    assert find("time-20261101").said == "the only one whose file name begins with time-20261101"
    assert find("gi") == Found(str(folder / stamp("git", 2)), 1, "whose label begins with gi")
    save(folder, stamp("git-extra", 9), started="2026-11-09T10:00:00Z", label="git-extra")
    assert find("git").path == str(folder / stamp("git", 2)), "a whole label goes before the beginning of another"


def test_a_label_is_found_as_it_was_given_or_as_the_file_has_it(folder: Path) -> None:
    path = save(folder, stamp("my-server", 5), started="2026-11-05T10:00:00Z", label="my server")
    assert find("my server").path == find("my-server").path == str(path)


def test_an_unknown_label_is_answered_with_the_nearest(folder: Path) -> None:
    with pytest.raises(CaptureError, match=r"has the label or name tiem; did you mean time\?$"):
        find("tiem")
    with pytest.raises(CaptureError, match=r"there are: git, time$"):
        find("zzzzzzz")
    with pytest.raises(CaptureError, match="has the label or name"):
        find("")
    with pytest.raises(CaptureError, match=r"\\x1b\[31m"):
        find("\x1b[31m")


def test_no_captures_at_all_says_how_to_make_one(tmp_path: Path, folder: Path) -> None:
    empty = str(tmp_path / "none")
    assert list_captures(empty) == []
    with pytest.raises(
        CaptureError,
        match=f"there is no capture in {empty} yet: `mcpsniff stdio -- COMMAND`, .* `mcpsniff run -- CLIENT`",
    ):
        find(None, empty)
    with pytest.raises(CaptureError, match="it is empty"):
        find("x", empty)
    with pytest.raises(CaptureError, match=r"cannot list the captures in .*: Not a directory"):
        list_captures(__file__)


def test_captures_of_servers_without_the_variable_are_pointed_at(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An MCP client's servers see neither MCPSNIFF_DIR nor XDG variables."""
    config = tmp_path / "home/.config/mcpsniff/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(f'dir = "{tmp_path}/theirs"')
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / stamp("fs", 8)).write_bytes(encoded(label="fs"))
    if os.uname().sysname == "Linux":
        with pytest.raises(CaptureError, match=f"do not see MCPSNIFF_DIR; theirs are in {tmp_path}/theirs"):
            find("fs")
    monkeypatch.delenv("MCPSNIFF_DIR")
    if os.uname().sysname == "Linux":
        assert find("fs").path == str(tmp_path / "theirs" / stamp("fs", 8))


def test_the_default_folder_is_found_although_only_the_reader_sees_xdg(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MCPSNIFF_DIR")
    from mcpsniff.capture.store import bare_folder

    Path(bare_folder()).mkdir(parents=True)
    path = save(Path(bare_folder()), stamp("fs", 8), started="2026-11-08T10:00:00Z", label="fs")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert find("fs").path == find(None).path == str(path)
    if os.uname().sysname == "Linux":
        with pytest.raises(CaptureError, match=f"do not see XDG_STATE_HOME; theirs are in {bare_folder()}"):
            find("nosuch")
