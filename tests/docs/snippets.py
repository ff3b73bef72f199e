"""Read the examples of docs/clients.md: fenced blocks by chapter, and the servers in them."""

import json
import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

PAGE = Path(__file__).resolve().parents[2] / "docs" / "clients.md"
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`(mcpsniff run [^`]*-- [a-z][^`]*)`")
"""Whole command lines within sentences: those of ``mcpsniff run`` whose client is a program."""
LITERAL = re.compile(r'"([^"]*)"')
CONFIGURATIONS = ("json", "jsonc", "toml", "yaml")
PROGRAMS = ("python", "ts")
COMMANDS = ("command", "cmd")
URLS = ("url", "uri", "serverUrl", "httpUrl")


@dataclass(frozen=True)
class Block:
    chapter: str
    language: str
    text: str


@dataclass(frozen=True)
class Server:
    """One entry: what it starts, or where it is, and everything else about it."""

    command: tuple[str, ...] = ()
    url: str = ""
    rest: dict[str, Any] = field(default_factory=dict)


def blocks() -> list[Block]:
    """Return all fenced blocks, in their order."""
    found = []
    for chapter in re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE):
        title = chapter.partition("\n")[0]
        found += [Block(title, language, text) for language, text in FENCE.findall(chapter)]
    return found


def command_lines() -> list[str]:
    """Return the lines of all shell blocks, and the those that stand in sentences."""
    text = PAGE.read_text(encoding="utf-8")
    lines = [line for block in blocks() if block.language == "sh" for line in block.text.splitlines()]
    return [*lines, *(line.replace("\n", " ") for line in INLINE.findall(FENCE.sub("", text)))]


def parsed(block: Block) -> Any:
    """Return what a configuration means. Raises ValueError and its like if it is none."""
    if block.language == "toml":
        return tomllib.loads(block.text)
    if block.language == "yaml":
        return YAML(typ="safe").load(block.text)
    return json.loads(block.text)


def servers(block: Block) -> dict[str, Server]:
    """Return the servers in a block, by where they stand in it."""
    if block.language in PROGRAMS:
        return _written(block.text)
    return dict(_found(parsed(block), ""))


def _found(node: Any, place: str) -> list[tuple[str, Server]]:
    if isinstance(node, list):
        return [one for number, each in enumerate(node) for one in _found(each, f"{place}/{number}")]
    if not isinstance(node, dict):
        return []
    if name := next((name for name in COMMANDS if name in node), None):
        words = node[name] if isinstance(node[name], list) else [node[name], *node["args"]]
        return [(place, Server(tuple(words), "", {**node, name: "", "args": []}))]
    if name := next((name for name in URLS if name in node), None):
        return [(place, Server((), node[name], {**node, name: ""}))]
    return [one for key, each in node.items() for one in _found(each, f"{place}/{key}")]


def _written(text: str) -> dict[str, Server]:
    """Return the servers in a program, by line: those with a URL, and all words where there is none."""
    found = {}
    for number, line in enumerate(text.splitlines()):
        words = tuple(LITERAL.findall(line))
        rest = {"line": LITERAL.sub("", line).replace(", ", "")}
        found[str(number)] = Server(url=words[0], rest=rest) if "://" in words[0] else Server(words, rest=rest)
    return found
