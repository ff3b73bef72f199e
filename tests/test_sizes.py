"""Modules and functions stay small enough to be read in one go (docs/architecture.md, "Sizes")."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[1]
MODULE_LINES = 400
FUNCTION_LINES = 60

MODULES = sorted([*(REPO / "mcpsniff").rglob("*.py"), *(REPO / "addons").rglob("*.py")])


def long_functions(source: str) -> Iterator[str]:
    """Name each function of a module that has more lines than FUNCTION_LINES, its docstring not counted."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if ast.get_docstring(node) is not None:
                lines -= (node.body[0].end_lineno or 0) - node.body[0].lineno + 1
            if lines > FUNCTION_LINES:
                yield f"{node.name} (line {node.lineno}) has {lines} lines"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(REPO)))
def test_module_and_its_functions_are_short(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    assert source.count("\n") <= MODULE_LINES
    assert list(long_functions(source)) == []


def test_a_long_function_is_noticed() -> None:
    body = "    pass\n" * FUNCTION_LINES
    assert list(long_functions(f"def f():\n{body}"))
    assert list(long_functions(f"async def f():\n{body}"))
    assert not list(long_functions(f'def f():\n    """Text.\n\n    More.\n    """\n{body[:-9]}'))
