"""Sessions with break points, in a place of their own."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mcpsniff.proxy.breaks import places
from tests.breaks.desks import Session, runtime_folder


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder for sockets, and no other is looked into by this process."""
    with runtime_folder(monkeypatch.setenv) as made:
        monkeypatch.setattr(places, "folders", lambda: [str(made / "mcpsniff")])
        yield made / "mcpsniff"


@pytest.fixture
def session() -> Iterator[Callable[..., Session]]:
    """Make sessions with these break points."""
    made: list[Session] = []

    def make(*expressions: str, **more: object) -> Session:
        made.append(Session(*expressions, **more))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for one in made:
        one.end()
