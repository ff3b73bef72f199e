"""A browser for the whole run, and pages made from records."""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from mcpsniff.capture.records import Record
from mcpsniff.transcript.payload import FOLDED, Style
from tests.html.chromium import Browser, find
from tests.html.pages import html

MISSING = "no Chromium on this machine (make test installs Debian's where it may): the page was not opened"

type Opened = Callable[..., Browser]


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    program = find()
    if program is None:
        if os.environ.get("CI") == "true":
            pytest.fail(MISSING)
        pytest.skip(MISSING)
    browser = Browser(program)
    yield browser
    browser.close()


@pytest.fixture
def opened(chromium: Browser, tmp_path: Path) -> Iterator[Opened]:
    """Open the page of some records; at the end of the test nothing must have gone wrong on it."""
    chromium.scripts(on=True)
    chromium.dark(on=False)
    chromium.size(1280, 900)

    def open_(records: Sequence[Record], style: Style = FOLDED, fragment: str = "", **header: Any) -> Browser:
        path = tmp_path / "page.html"
        path.write_bytes(html(records, style=style, **header))
        chromium.open(path, fragment=fragment)
        return chromium

    yield open_
    assert chromium.complaints() == []
