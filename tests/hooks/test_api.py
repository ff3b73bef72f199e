"""``import mcpsniff`` for addons: everything by name, nothing before it is asked for."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import mcpsniff

SOURCE = Path(mcpsniff.__file__)


def stubs() -> dict[str, str]:
    """What type checkers are told: name to module."""
    tree = ast.parse(SOURCE.read_text(encoding="utf-8"))
    guarded = next(node for node in tree.body if isinstance(node, ast.If))
    return {
        alias.asname or alias.name: node.module or ""
        for node in guarded.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def test_type_checkers_and_python_agree() -> None:
    assert stubs() == mcpsniff._ROOM
    for name, room in stubs().items():
        assert getattr(mcpsniff, name) is getattr(sys.modules[room], name)
        assert name in dir(mcpsniff)
    assert (SOURCE.parent / "py.typed").exists()


def test_what_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'mcpsniff' has no attribute 'nothing'"):
        _ = mcpsniff.nothing  # type: ignore[attr-defined]
    assert not hasattr(mcpsniff, "__wrapped__")


def test_importing_it_loads_nothing() -> None:
    script = "import sys; before = set(sys.modules); import mcpsniff; print(sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", script], cwd=SOURCE.parents[1], capture_output=True, text=True)
    assert done.stdout.strip() == "['mcpsniff']", done.stderr
