"""The hooks as tables, made from their dataclasses."""

from typing import Final

from mcpsniff.hooks.events import EDITING, HOOKS, LIFE, OBSERVING, Hook

GROUPS: Final = {
    LIFE: "Of the addon itself",
    OBSERVING: "Told of what has passed",
    EDITING: "In line, with what is held",
}


def signature(hook: type[Hook]) -> str:
    """How a hook is called, such as ``mcp_edit(message: Message)``."""
    return f"{hook.name}({', '.join(f'{name}: {kind}' for name, kind in hook.parameters())})"


def hooks_markdown() -> str:
    """One table of all hooks."""
    lines = ["| hook | argument | when |", "|---|---|---|"]
    for group, title in GROUPS.items():
        lines.append(f"| **{title}** | | |")
        for hook in HOOKS.values():
            if hook.group == group:
                arguments = ", ".join(f"`{name}`: `{kind}`" for name, kind in hook.parameters())
                lines.append(f"| `{hook.name}` | {arguments} | {_marked(hook.documentation())} |")
    return "\n".join(lines)


def hooks_text() -> str:
    """The same for a terminal."""
    lines: list[str] = []
    for group, title in GROUPS.items():
        lines += [f"{title}:", ""]
        for hook in HOOKS.values():
            if hook.group == group:
                lines += [f"  {signature(hook)}", f"      {hook.documentation().replace('``', '')}"]
        lines.append("")
    return "\n".join(lines).rstrip()


def _marked(text: str) -> str:
    return text.replace("``", "`").replace("|", "\\|")
