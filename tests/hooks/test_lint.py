"""What is likely wrong with an addon, told from its text."""

import pytest

from mcpsniff.hooks.lint import remarks
from mcpsniff.hooks.table import hooks_markdown, hooks_text


def told(text: str) -> list[str]:
    return [f"{remark.line}: {remark.text}" for remark in remarks(text.encode(), "addon.py")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("def mcp_reqest(message): pass", "1: there is no hook mcp_reqest; did you mean mcp_request?"),
        ("def mcp_zzzzzzzzzzzz(): pass", "1: there is no hook mcp_zzzzzzzzzzzz (mcpsniff addons --hooks lists them)"),
        ("def mpc_edit(message): return message", "1: mpc_edit is no hook; did you mean mcp_edit?"),
        ("def mcp_close(): pass", "1: mcp_close is called as mcp_close(close)"),
        ("def mcp_close(a, b): pass", "1: mcp_close is called as mcp_close(close)"),
        ("def mcp_close(a, *, b): pass", "1: mcp_close is called as mcp_close(close)"),
        ("def load(): pass", "1: load is called as load(loader)"),
        ("class A:\n def done(): pass", "2: done is called as done(self)"),
        ("if 1:\n class A:\n  async def running(self, x): pass", "3: running is called as running(self)"),
        ("def mcp_edit(m):\n yield m", "1: mcp_edit yields; return a list to let several messages pass"),
        (
            "def mcp_edit(m):\n if m:\n  return\n return m",
            "3: return without a value drops the message; return None says so",
        ),
    ],
)
def test_a_slip_is_told_with_its_line(text: str, expected: str) -> None:
    assert told(text) == [expected]


@pytest.mark.parametrize(
    "text",
    [
        "def mcp_close(close): pass",
        "def mcp_close(close, more=1): pass",
        "def mcp_close(*all): pass",
        "def mcp_close(close, *, more=1): pass",
        "class A:\n @staticmethod\n def mcp_close(close): pass",
        "class A:\n @classmethod\n def mcp_close(cls, close): pass",
        "def helper(): pass\ndef request(flow): pass\ndef close_all(): pass",
        "def outer():\n def mcp_wrong(): pass",
    ],
)
def test_what_is_right_is_not_told_of(text: str) -> None:
    assert told(text) == []


@pytest.mark.parametrize(
    "body",
    [
        "return m",
        "raise ValueError",
        "if m: return m\nelse: raise ValueError",
        "if m: return m\nelif 1: return None\nelse: return m",
        "while True: pass",
        "while 1:\n for x in m:\n  break",
        "with m: return m",
        "try: return m\nexcept ValueError: return None",
        "try: pass\nfinally: return m",
        "try: pass\nexcept ValueError: return m\nelse: return m",
        "match m:\n case 1: return m\n case _: return None",
        "def inner(): pass\nreturn m",
        "f = lambda: (yield)\nreturn m",
    ],
)
def test_a_hook_that_cannot_end_without_a_return(body: str) -> None:
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    assert told(f"def mcp_edit(m):\n{lines}\n") == []


@pytest.mark.parametrize(
    "body",
    [
        "pass",
        "if m: return m",
        "for x in m: return m",
        "while m: return m",
        "while True:\n if m: break",
        "while True:\n try: pass\n except ValueError: break",
        "try: return m\nexcept ValueError: pass",
        "match m:\n case 1: return m",
        "match m:\n case x if x: return m",
        "match m:\n case 1: pass\n case _: return m",
    ],
)
def test_a_hook_that_may_end_without_a_return(body: str) -> None:
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    (line,) = told(f"async def mcp_edit(m):\n{lines}\n")
    assert line.startswith("1: mcp_edit may end without a return")


def test_each_hook_is_in_the_tables() -> None:
    from mcpsniff.hooks.events import HOOKS

    for name, hook in HOOKS.items():
        assert f"| `{name}` |" in hooks_markdown()
        assert f"  {name}(" in hooks_text()
        assert hook.documentation()
