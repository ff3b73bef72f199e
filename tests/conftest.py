"""Fixtures and rules for the whole test suite."""

import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

REPO = Path(__file__).resolve().parents[1]

# No test is about time (bench/ is), and a busy machine must not fail one. Where CI=true the examples are the same each
# time, so that a change is judged by what it changes; everybody else's runs look for new ones.
settings.register_profile("house", deadline=None, derandomize=os.environ.get("CI") == "true")
settings.load_profile("house")


# A shell starts what is to run in the background with these ignored, and so would be all that the tests start.
for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGQUIT, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, usual)

# Where it is set, each of the hundreds of processes that are started would compile all that it imports.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes longest comes first, so that no process of several has it left when the others are done."""
    items.sort(key=lambda item: item.get_closest_marker("peers") is None)


@pytest.fixture(scope="session")
def repo() -> Path:
    """The root of the checkout."""
    return REPO


@pytest.fixture(autouse=True)
def private_settings(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep every test away from the captures and the configuration of the person who runs it."""
    home = tmp_path_factory.getbasetemp() / "settings"
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "state"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "cache"))
    monkeypatch.setenv("MCPSNIFF_DIR", str(home / "captures"))
