"""Addons written by a test, in front of the editor of `tests.rules.staging`."""

import os
import textwrap
from collections.abc import Sequence
from pathlib import Path

import pytest

from mcpsniff.hooks.loading import load
from tests.rules.staging import Stage

OLD = 1_700_000_000


@pytest.fixture
def looks_always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of addons are looked at with each message, not only every 20 ms, and waited for."""
    monkeypatch.setattr("mcpsniff.hooks.addon.LOOK", 0.0)
    monkeypatch.setattr("mcpsniff.hooks.addon.WAIT", 30.0)


def written(path: Path, text: str, at: float = OLD) -> Path:
    """Write a file that was last changed at this time, long ago in most cases."""
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    os.utime(path, (at, at))
    return path


class Loaded(Stage):
    """A stage whose only interceptors are the addons in these files."""

    def __init__(self, *files: Path, settings: Sequence[str] = ()) -> None:
        self.said: list[str] = []
        self.loaded = load([str(file) for file in files], settings, self.said.append)
        super().__init__(self.loaded.editing)

    def end(self) -> list[str]:
        """Traffic has ended."""
        return self.editor.end()
