"""docs/rules.md says what is so."""

import re
import shlex
from pathlib import Path

from mcpsniff.cli.options import HTTP, parse
from mcpsniff.proxy.rules.file import _BESIDES, _MAP, ACTIONS, rules_in
from mcpsniff.proxy.rules.matching import KNOWN, matcher
from mcpsniff.proxy.rules.reading import rules_from
from mcpsniff.transcript.filter.terms import FIELDS
from tests.rules.test_actions import NONE

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "rules.md").read_text(encoding="utf-8")


def test_the_files_are_files_of_rules(tmp_path: Path) -> None:
    (tmp_path / "weather.json").write_text('{"content": []}', encoding="utf-8")
    blocks = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    file = tmp_path / "rules.toml"
    used = set()
    for block in blocks:
        file.write_text(block, encoding="utf-8")
        assert len(list(rules_in(str(file), "http"))) >= 2
        used |= set(re.findall(r"^(\w+) = ", block, re.MULTILINE))
    assert used == {*ACTIONS, _MAP, *_BESIDES}, "each key has an example"


def test_each_key_has_its_row() -> None:
    table = PAGE.split("| key | value | what it does |\n|---|---|---|\n")[1].split("\n\n")[0]
    assert set(re.findall(r"`(\w+)`", " ".join(row.split("|")[1] for row in table.splitlines()))) == {
        *ACTIONS,
        _MAP,
        *_BESIDES,
    }


def test_the_commands_can_be_given(tmp_path: Path) -> None:
    (tmp_path / "rules.toml").write_text("[[rule]]\nwhen='a'\ndrop=true\n", encoding="utf-8")
    (commands,) = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    for command in commands.replace("rules.toml", str(tmp_path / "rules.toml")).splitlines():
        words = shlex.split(command)
        options, _ = parse(HTTP, words[2:], anywhere=True)
        assert rules_from({**NONE, **{name: options[name] for name in NONE}}, words[1])


def test_the_expressions_can_be_judged() -> None:
    for expression in re.findall(r"(?:when = |--block )'([^']+)'", PAGE):
        matcher(expression)
    for expression in ("method:tools/call not tool:echo", 'tool:shell text:"rm -rf"'):
        assert expression in PAGE
        matcher(expression)


def test_the_fields_that_cannot_be_asked_for_are_named() -> None:
    refused = PAGE.split("What only the capture tells is refused")[1].split("\n\n")[0]
    assert [field for field in set(FIELDS) - KNOWN if f"`{field}`" not in refused] == []


def test_each_option_has_its_row() -> None:
    for name in NONE:
        assert f"| `--{name.replace('_', '-')} " in PAGE
