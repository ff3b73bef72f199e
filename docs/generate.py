"""Write, or check, the generated blocks of README.md and docs/*.md.

A block is what stands between a line ``<!-- generated: NAME -->`` and the next line ``<!-- end -->``; NAME is a
provider's name, with an argument after a colon where it takes one (``help:show``).

    python docs/generate.py            write what is stale
    python docs/generate.py --check    change nothing; print a diff and exit 1 when something is stale
    python docs/generate.py FILE...    the same for these files only

Exit status 2: a block cannot be generated (an unknown name, a module that does not exist, a block without an end).
"""

import argparse
import difflib
import importlib
import importlib.util
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

REPO = Path(__file__).resolve().parents[1]
START = re.compile(r"^<!-- generated: (\S+) -->$")
END = "<!-- end -->"
HELP_WIDTH = 80


class GenerateError(Exception):
    """A block cannot be generated; the text says which and why."""


def member(module: str, name: str) -> Any:
    """Return an attribute of a module of the package. Raises GenerateError when there is none."""
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise GenerateError(f"{module}.{name} is needed and not there: {error}") from error


def help_text(command: str) -> str:
    """Return ``mcpsniff COMMAND --help`` as a text block; without a command, that of mcpsniff itself."""
    from click.testing import CliRunner

    words = command.split("/") if command else []
    arguments = [*words, "--help"]
    result = CliRunner().invoke(
        member("mcpsniff.cli.main", "cli"),
        arguments,
        prog_name="mcpsniff",
        terminal_width=HELP_WIDTH,
        max_content_width=HELP_WIDTH,
    )
    if result.exit_code != 0:
        raise GenerateError(f"mcpsniff {' '.join(arguments)} exits {result.exit_code}: {result.output}")
    return f"```text\n$ mcpsniff {' '.join(arguments)}\n{result.output.rstrip()}\n```"


def commands_table(_: str) -> str:
    """Return a table of the commands."""
    lines = ["| command | what it does |", "|---|---|"]
    for name, (_module, text) in member("mcpsniff.cli.main", "COMMANDS").items():
        lines.append(f"| `mcpsniff {name}` | {cell(text)} |")
    return "\n".join(lines)


def checks_table(_: str) -> str:
    """Return a table of every registered check, one per group, in the order of their codes."""
    return str(member("mcpsniff.checks.table", "table_markdown")())


def hooks_table(_: str) -> str:
    """Return a table of the hooks that addons may have."""
    return str(member("mcpsniff.hooks.table", "hooks_markdown")())


def cell(text: str) -> str:
    """Make a text safe inside a Markdown table."""
    return " ".join(text.split()).replace("|", "\\|")


def records_table(_: str) -> str:
    """Return the table of the record kinds of a capture."""
    return str(member("mcpsniff.capture.records", "table_markdown")())


def header_table(_: str) -> str:
    """Return the table of the fields of a capture's first line."""
    return str(member("mcpsniff.capture.records", "header_table_markdown")())


def options_table(which: str) -> str:
    """Return a table of options: RECORDING (common to the commands that record) or STDIO."""
    lines = ["| option | meaning | default |", "|---|---|---|"]
    for option in member("mcpsniff.cli.options", which or "RECORDING"):
        spelling = ", ".join(f"`{spelling}`" for spelling in option.spellings)
        value = f" `{option.metavar}`" if option.metavar else ""
        default = "" if option.default in (None, False) else f"{option.default}"
        lines.append(f"| {spelling}{value} | {cell(option.help)} | {default} |")
    return "\n".join(lines)


def flaws_tables(_: str) -> str:
    """Return the tables of all flaws of frames and messages."""
    return str(member("mcpsniff.transcript.jsonl", "flaws_markdown")())


def filter_fields(_: str) -> str:
    """Return the table of the fields of the filter language."""
    lines = ["| field | meaning |", "|---|---|"]
    for name, field in member("mcpsniff.transcript.filter.terms", "FIELDS").items():
        lines.append(f"| `{name}` | {cell(field.help)} |")
    return "\n".join(lines)


def faults_table(_: str) -> str:
    """Return the table of the faults that ``--fault`` knows."""
    return str(member("mcpsniff.proxy.faults.kinds", "table_markdown")())


def sample(which: str) -> str:
    """Return rows of a sample capture's transcript as a text block: ``NAME/FIRST-LAST``, by their numbers."""
    name, _, rows = which.partition("/")
    first, _, last = rows.partition("-")
    path = REPO / "captures" / "make.py"
    spec = importlib.util.spec_from_file_location("make_captures", path)
    if spec is None or spec.loader is None or not (first.isdecimal() and last.isdecimal()):
        raise GenerateError(f"sample:{which} is not NAME/FIRST-LAST")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    try:
        text = str(module.excerpt(name, int(first), int(last)))
    except OSError as error:
        raise GenerateError(f"there is no sample {name}: {error}") from error
    if not text:
        raise GenerateError(f"sample:{which} has no such rows")
    return f"```text\n{text.rstrip()}\n```"


PROVIDERS: dict[str, Callable[[str], str]] = {
    "commands": commands_table,
    "help": help_text,
    "checks": checks_table,
    "records": records_table,
    "header": header_table,
    "options": options_table,
    "flaws": flaws_tables,
    "sample": sample,
    "filter-fields": filter_fields,
    "faults": faults_table,
    "hooks": hooks_table,
}


def block(name: str) -> str:
    """Generate one block. Raises GenerateError when the name is unknown or its source is not there."""
    kind, _, argument = name.partition(":")
    if kind not in PROVIDERS:
        raise GenerateError(f"no provider {kind!r}; there are {', '.join(sorted(PROVIDERS))}")
    return PROVIDERS[kind](argument).strip("\n")


def renewed(text: str) -> str:
    """Return the text with every block generated anew; text outside of blocks is left as it is."""
    lines: list[str] = []
    source = iter(text.splitlines())
    for line in source:
        lines.append(line)
        if start := START.match(line):
            if not any(inner == END for inner in source):  # consumes the old block
                raise GenerateError(f"block {start[1]} has no {END}")
            lines += [block(start[1]), END]
    return "\n".join(lines) + "\n" if lines else ""


def run(paths: list[Path], *, check: bool) -> int:
    """Renew or check the files; returns the exit status."""
    status = 0
    for path in paths:
        name = str(path.relative_to(REPO)) if path.is_relative_to(REPO) else str(path)
        old = path.read_text(encoding="utf-8")
        try:
            new = renewed(old)
        except GenerateError as error:
            print(f"{name}: {error}", file=sys.stderr)
            status = 2
            continue
        if new == old:
            continue
        if check:
            status = max(status, 1)
            diff = difflib.unified_diff(old.splitlines(), new.splitlines(), name, f"{name} (generated)", lineterm="")
            print("\n".join(diff))
        else:
            path.write_text(new, encoding="utf-8")
            print(f"{name}: written")
    if check and status == 1:
        print("stale: run `make docs`", file=sys.stderr)
    return status


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Write or check the generated blocks of the documentation.")
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 when something is stale")
    parser.add_argument("files", nargs="*", type=Path)
    options = parser.parse_args()
    files = [path.resolve() for path in options.files] or [REPO / "README.md", *sorted((REPO / "docs").glob("*.md"))]
    return run(files, check=options.check)


if __name__ == "__main__":
    sys.exit(main())
