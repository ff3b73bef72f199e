"""`mcpsniff show --format html`, as a process."""

import stat
from pathlib import Path

import pytest

from tests.capture.capture_files import save
from tests.cli.running import run
from tests.html.pages import Elements, html
from tests.transcript.golden import HEADER, SESSION

NAME = "time-20261129T100000.000Z-1.mcpcap"


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    return save(tmp_path, NAME, SESSION, **HEADER)


def test_a_page_is_written_to_stdout(capture: Path) -> None:
    ran = run("show", str(capture), "--format", "html")
    assert (ran.status, ran.err) == (0, "")
    assert ran.out == html(SESSION, **HEADER).decode().replace("test.mcpcap", str(capture))


def test_a_page_in_a_file_is_private(capture: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    ran = run("show", str(capture), "--format", "html", "-o", str(page))
    assert (ran.status, ran.out, ran.err) == (0, "", "")
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
    assert page.read_bytes().startswith(b"<!DOCTYPE html>")


def test_payloads_whole_or_none(capture: Path) -> None:
    def details(*options: str) -> list[dict[str, str | None]]:
        page = Elements(run("show", str(capture), "--format", "html", *options).out.encode())
        return [attributes for tag, attributes in page.found if tag == "details"]

    assert {tuple(one) for one in details()} == {()}
    assert {tuple(one) for one in details("--payload")} == {("open",)}
    assert details("--no-payload") == []


def test_a_part_of_a_session_says_so(capture: Path) -> None:
    ran = run("show", str(capture), "--format", "html", "--filter", "method:tools/call")
    assert (ran.status, ran.err) == (0, "")
    assert "The filter shows 3 of 7 messages" in ran.out
    assert "<li id=n9 " in ran.out
    assert "<li id=n2 " not in ran.out
