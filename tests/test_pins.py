"""What is pinned names packages and versions only, so that any index or mirror will do; and it fits what we ask for."""

import json
import re
import tomllib
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[1]
PEERS = REPO / "tests" / "peers"
PIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*==[A-Za-z0-9][A-Za-z0-9._+!-]*")


@pytest.mark.parametrize(
    "path", [REPO / "constraints.txt", *sorted(PEERS.glob("py-*.txt"))], ids=lambda path: path.name
)
def test_a_line_is_a_name_and_a_version(path: Path) -> None:
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    assert lines
    assert [line for line in lines if not PIN.fullmatch(line)] == []


@pytest.mark.parametrize("folder", [PEERS, REPO / "tests" / "conformance"], ids=lambda path: path.name)
def test_the_npm_lock_holds_versions_and_no_addresses(folder: Path) -> None:
    packages = json.loads((folder / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    manifest = json.loads((folder / "package.json").read_text(encoding="utf-8"))
    wanted = manifest["dependencies"] | manifest.get("optionalDependencies", {})
    # An alias is asked for as npm:PACKAGE@VERSION.
    assert {name: packages[f"node_modules/{name}"]["version"] for name in wanted} == {
        name: version.rpartition("@")[2] for name, version in wanted.items()
    }
    assert "://" not in json.dumps(packages)
    assert not [name for name, entry in packages.items() if {"resolved", "integrity"} & entry.keys()]


def test_every_direct_requirement_is_pinned() -> None:
    project = tomllib.loads((REPO / "pyproject.toml").read_text(encoding="utf-8"))
    asked = {
        re.split(r"[<>=!~\[; ]", requirement, maxsplit=1)[0].lower()
        for requirement in project["project"]["dependencies"] + project["dependency-groups"]["dev"]
    }
    pinned = {line.partition("==")[0].lower() for line in (REPO / "constraints.txt").read_text().splitlines()}
    assert asked <= pinned
