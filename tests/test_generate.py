"""docs/generate.py: generated blocks are renewed in place, and a stale or impossible one is told apart."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[1]
SCRIPT = REPO / "docs" / "generate.py"
spec = importlib.util.spec_from_file_location("generate", SCRIPT)
assert spec is not None
assert spec.loader is not None
generate = importlib.util.module_from_spec(spec)
spec.loader.exec_module(generate)

STALE = "# Title\n\n<!-- generated: records -->\nold\n\n<!-- end -->\n\ntail\n"


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, SCRIPT, *map(str, arguments)], capture_output=True, text=True)


def test_a_stale_block_is_shown_then_written_then_current(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(STALE, encoding="utf-8")

    checked = run("--check", page)
    assert checked.returncode == 1
    assert "\n-old\n" in checked.stdout
    assert page.read_text(encoding="utf-8") == STALE

    assert run(page).returncode == 0
    text = page.read_text(encoding="utf-8")
    assert text.startswith("# Title\n\n<!-- generated: records -->\n|")
    assert text.endswith("|\n<!-- end -->\n\ntail\n")
    assert run("--check", page).returncode == 0


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("<!-- generated: nonsense -->\n<!-- end -->\n", "no provider 'nonsense'"),
        ("<!-- generated: records -->\nno end\n", "has no <!-- end -->"),
    ],
)
def test_a_block_that_cannot_be_generated_fails_loudly(tmp_path: Path, text: str, complaint: str) -> None:
    page = tmp_path / "page.md"
    page.write_text(text, encoding="utf-8")
    for arguments in ([page], ["--check", page]):
        done = run(*arguments)
        assert done.returncode == 2
        assert complaint in done.stderr
        assert page.read_text(encoding="utf-8") == text


def test_a_source_that_does_not_exist_is_named() -> None:
    with pytest.raises(generate.GenerateError, match=r"mcpsniff\.nowhere\.table is needed"):
        generate.member("mcpsniff.nowhere", "table")


def test_text_without_blocks_is_left_alone() -> None:
    for text in ("", "a\n", "<!-- end -->\n", "<!-- generated: records --> in a sentence\n"):
        assert generate.renewed(text) == text


def test_rows_of_a_sample() -> None:
    shown = generate.block("sample:faults/9-14")
    assert shown.startswith("```text\n    0.004     #9  ┬   → tools/call compile")
    assert "MCP404" in shown
    for wrong in ("sample:faults", "sample:faults/x-y", "sample:nobody/1-2", "sample:faults/9000-9001"):
        with pytest.raises(generate.GenerateError):
            generate.block(wrong)
