"""docs/capture-format.md tells the truth: its example reads, its programs run, its tables match the code."""

import re
import shutil
import subprocess
import sys
from io import BytesIO
from pathlib import Path

import pytest

from mcpsniff.capture.reader import open_stream
from mcpsniff.capture.records import HEADER_FIELDS, RECORD_FIELDS, header_table_markdown, table_markdown
from tests.capture.capture_files import PING, save


@pytest.fixture(scope="session")
def text(repo: Path) -> str:
    return (repo / "docs/capture-format.md").read_text(encoding="utf-8")


def code(text: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def test_the_example_is_a_capture(text: str) -> None:
    capture = open_stream(BytesIO(code(text, "json")[0].encode()))
    records = list(capture.records())
    assert capture.damage == []
    assert [record.kind for record in records] == ["open", "open", "chunk", "chunk", "close"]
    assert records[2].body == PING
    assert records[3].body == b"\xff\x00"
    assert capture.header.extra is None


def test_the_program_of_ten_lines_reads_a_capture(text: str, tmp_path: Path) -> None:
    (program,) = code(text, "python")
    path = save(tmp_path, "a.mcpcap")
    result = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True, check=True)
    assert result.stdout.splitlines()[0] == f"  0.001532 s  channel 0  {PING!r}"
    assert result.stdout.splitlines()[-1] == "  0.002300 s  channel 1  b'\\xff\\x00\\n'"
    assert len(program.strip().splitlines()) <= 10


def test_the_shell_lines_do_what_they_say(text: str, tmp_path: Path) -> None:
    path = save(tmp_path, "a.mcpcap")
    jq, grep = code(text, "sh")
    result = subprocess.run(grep.replace("CAPTURE", str(path)), shell=True, capture_output=True, text=True)
    assert result.stdout == '[9000,"close",0,{"how":"eof"}]\n[9001,"close",1,{"how":"exit","status":0}]\n'
    if shutil.which("jq"):
        result = subprocess.run(jq.replace("CAPTURE", str(path)), shell=True, capture_output=True, text=True)
        assert result.stdout == '{"jsonrpc":"2.0","id":1,"result":{}}\n'


def test_the_tables_name_every_kind_and_member() -> None:
    table = table_markdown()
    for kind, shape in RECORD_FIELDS.items():
        assert f"| **{kind}** |" in table
        assert all(f"| `{field.name}` | {field.type}" in table for field in shape.fields)
    assert all(f"| `{field.name}` | {field.type}" in header_table_markdown() for field in HEADER_FIELDS)


def test_the_tables_in_the_reference_are_current(text: str) -> None:
    assert table_markdown() in text
    assert header_table_markdown() in text
