"""Which captures begin: by the recorder's lock, each told once, also parts, returns and folders that come later."""

import os
import time
from pathlib import Path

import pytest

from mcpsniff.capture.arrivals import YOUNG, Arrivals
from mcpsniff.capture.store import new_capture_file, new_part_file, writer_state
from mcpsniff.errors import CaptureError
from tests.capture.capture_files import save


def begun(folder: Path, name: str = "a.mcpcap") -> tuple[int, str]:
    return new_capture_file(None, str(folder / name), None, [])


def test_the_state_of_a_file(tmp_path: Path) -> None:
    descriptor, path = begun(tmp_path)
    assert writer_state(path) is True
    os.close(descriptor)
    assert writer_state(path) is False
    assert writer_state(str(tmp_path / "none")) is None


def test_each_capture_is_told_once_when_it_begins(tmp_path: Path) -> None:
    folder = tmp_path / "later"
    save(tmp_path, "elsewhere.mcpcap")
    arrivals = Arrivals([str(folder)])
    assert arrivals.look() == []
    folder.mkdir()
    save(folder, "finished.mcpcap")
    (folder / "notes.txt").touch()
    assert arrivals.look() == []
    one, path = begun(folder)
    assert arrivals.look() == [path]
    assert arrivals.look() == []
    two, other = begun(folder, "b.mcpcap")
    os.close(one)
    assert arrivals.look() == [other]
    os.close(two)


def test_a_recorder_may_take_hold_a_moment_after_the_file_is_there(tmp_path: Path) -> None:
    descriptor, path = begun(tmp_path, "other")
    os.rename(path, tmp_path / "x")
    (tmp_path / "a.mcpcap").touch()
    arrivals = Arrivals([str(tmp_path)])
    assert arrivals.look() == []
    os.replace(tmp_path / "x", tmp_path / "a.mcpcap")
    assert arrivals.look() == [str(tmp_path / "a.mcpcap")]
    os.close(descriptor)


def test_an_old_file_is_not_looked_at_for_ever(tmp_path: Path) -> None:
    path = save(tmp_path, "a.mcpcap")
    os.utime(path, (time.time() - 2 * YOUNG,) * 2)
    arrivals = Arrivals([str(tmp_path)])
    arrivals.look()
    assert not arrivals._folders[str(tmp_path)].pending
    young = save(tmp_path, "b.mcpcap")
    arrivals.look()
    assert arrivals._folders[str(tmp_path)].pending == {str(young)}


def test_a_capture_is_told_by_its_first_part_whichever_is_written(tmp_path: Path) -> None:
    one, first = begun(tmp_path)
    two, second = new_part_file(first, 2)
    os.close(one)
    arrivals = Arrivals([str(tmp_path)])
    assert arrivals.look() == [first]
    three, _ = new_part_file(first, 3)
    assert arrivals.look() == []
    os.unlink(first)
    assert Arrivals([str(tmp_path)]).look() == [second]
    os.close(two)
    os.close(three)


def test_what_was_lost_or_removed_is_told_when_it_comes_back(tmp_path: Path) -> None:
    one, path = begun(tmp_path)
    arrivals = Arrivals([str(tmp_path)])
    assert arrivals.look() == [path]
    arrivals.forget(path)
    assert arrivals.look() == [path], "replaced: another file of that name is being written"
    os.unlink(path)
    os.close(one)
    assert arrivals.look() == []
    two, again = begun(tmp_path)
    assert arrivals.look() == [again]
    os.close(two)


def test_a_folder_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CaptureError, match=r"cannot list the captures in .*file: "):
        Arrivals([str(tmp_path / "file")]).look()
