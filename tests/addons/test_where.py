"""`mcpsniff addons`: where the addons are, and that they are in the wheel."""

import tomllib
from pathlib import Path

import pytest

from mcpsniff.cli.addons import ADDONS
from mcpsniff.cli.main import run
from tests.proxy.wrapped import REPO


def test_each_addon_that_there_is_has_a_path(capsys: pytest.CaptureFixture[str]) -> None:
    assert sorted(ADDONS) == sorted(path.stem for path in (REPO / "addons").glob("*.py"))
    assert run(["addons"]) == 0
    listed = capsys.readouterr().out
    for name in ADDONS:
        assert run(["addons", name]) == 0
        path = capsys.readouterr().out.strip()
        assert Path(path).is_file()
        assert path in listed


def test_an_unknown_addon_is_bad_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["addons", "mcp_nothing"]) == 2
    assert "mcp_nothing" in capsys.readouterr().err


def test_the_wheel_has_them_where_the_command_looks() -> None:
    project = tomllib.loads((REPO / "pyproject.toml").read_text())
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel["force-include"] == {"addons": "mcpsniff/addons"}
