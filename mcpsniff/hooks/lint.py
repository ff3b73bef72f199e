"""Look at an addon without traffic: names that are no hook, arguments that do not fit, messages dropped by mistake."""

import ast
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Final, NamedTuple

from mcpsniff.hooks.events import HOOKS

PREFIX: Final = "mcp_"
NEAR: Final = 0.85
"""How much a name without the prefix must be like a hook's to be taken for a slip."""

type Function = ast.FunctionDef | ast.AsyncFunctionDef


class Remark(NamedTuple):
    """Something that is likely wrong."""

    line: int
    text: str


def remarks(source: bytes, path: str) -> list[Remark]:
    """What is likely wrong with the addon whose text is ``source``. Raises SyntaxError."""
    tree = ast.parse(source, path)
    found = [remark for function, is_method in _functions(tree) for remark in _of(function, is_method=is_method)]
    return sorted(found)


def _functions(tree: ast.Module) -> Iterator[tuple[Function, bool]]:
    """Functions that could be hooks, and whether they are methods with a ``self``."""
    for node in _statements(tree.body):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node, False
        elif isinstance(node, ast.ClassDef):
            for inner in _statements(node.body):
                if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef):
                    names = {getattr(one, "id", "") for one in inner.decorator_list}
                    yield inner, "staticmethod" not in names


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a body, those under an ``if`` or ``try`` included."""
    for node in body:
        yield node
        for field in ("body", "orelse", "finalbody"):
            if isinstance(node, ast.If | ast.Try | ast.With):
                yield from _statements(getattr(node, field, []))


def _of(function: Function, *, is_method: bool) -> Iterator[Remark]:
    name, hook = function.name, HOOKS.get(function.name)
    if hook is None:
        near = get_close_matches(name, [known for known in HOOKS if known.startswith(PREFIX)], 1, 0.5)
        if name.startswith(PREFIX):
            meant = f"; did you mean {near[0]}?" if near else " (mcpsniff addons --hooks lists them)"
            yield Remark(function.lineno, f"there is no hook {name}{meant}")
        elif get_close_matches(name, near, 1, NEAR):
            yield Remark(function.lineno, f"{name} is no hook; did you mean {near[0]}?")
        return
    names = [one for one, _ in hook.parameters()]
    if not _takes(function, len(names) + is_method):
        wanted = ", ".join(["self", *names] if is_method else names)
        yield Remark(function.lineno, f"{name} is called as {name}({wanted})")
    if name == "mcp_edit":
        yield from _of_edit(function)


def _of_edit(function: Function) -> Iterator[Remark]:
    """Messages that an edit hook drops, though nobody has said so."""
    own = [*_own(function)]
    if any(isinstance(node, ast.Yield | ast.YieldFrom) for node in own):
        yield Remark(function.lineno, f"{function.name} yields; return a list to let several messages pass")
        return
    for node in own:
        if isinstance(node, ast.Return) and node.value is None:
            yield Remark(node.lineno, "return without a value drops the message; return None says so")
    if not _leaves(function.body):
        text = f"{function.name} may end without a return, which drops the message; return message lets it pass"
        yield Remark(function.lineno, text)


def _own(function: Function) -> Iterator[ast.AST]:
    """The nodes of a function, but not of those inside it."""
    todo: list[ast.AST] = list(function.body)
    while todo:
        node = todo.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            todo.extend(ast.iter_child_nodes(node))


def _takes(function: Function, number: int) -> bool:
    """True if it can be called with so many arguments."""
    arguments = function.args
    most = len(arguments.posonlyargs) + len(arguments.args)
    least = most - len(arguments.defaults)
    is_closed = all(default is not None for default in arguments.kw_defaults)
    return least <= number and (number <= most or arguments.vararg is not None) and is_closed


def _leaves(body: list[ast.stmt]) -> bool:
    """True if every way through ``body`` ends in a return or an exception."""
    return any(_leaves_at(node) for node in body)


def _leaves_at(node: ast.stmt) -> bool:
    if isinstance(node, ast.Return | ast.Raise):
        return True
    if isinstance(node, ast.If):
        return _leaves(node.body) and _leaves(node.orelse)
    if isinstance(node, ast.With | ast.AsyncWith):
        return _leaves(node.body)
    if isinstance(node, ast.Try | ast.TryStar):
        tried = _leaves(node.body) or _leaves(node.orelse)
        return _leaves(node.finalbody) or (tried and all(_leaves(handler.body) for handler in node.handlers))
    if isinstance(node, ast.While):
        is_endless = isinstance(node.test, ast.Constant) and bool(node.test.value)
        return is_endless and not _breaks(node.body)
    if isinstance(node, ast.Match):
        last = node.cases[-1]
        is_whole = isinstance(last.pattern, ast.MatchAs) and last.pattern.pattern is None and last.guard is None
        return is_whole and all(_leaves(case.body) for case in node.cases)
    return False


def _breaks(body: list[ast.stmt]) -> bool:
    """True if there is a break out of this loop."""
    for node in body:
        if isinstance(node, ast.Break):
            return True
        if isinstance(node, ast.While | ast.For | ast.AsyncFor):
            inner = [node.orelse]
        else:
            inner = [getattr(node, field, []) for field in ("body", "orelse", "finalbody")]
            inner += [one.body for one in getattr(node, "handlers", [])] + [
                one.body for one in getattr(node, "cases", [])
            ]
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and any(map(_breaks, inner)):
            return True
    return False
