"""The torture script for HTTP, both suites, in front of a fake server that misbehaves in many ways."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.proxy.wrapped import REPO, environment

SAME = REPO / "tests" / "relay" / "same.py"
"""An addon that is given each message and changes none."""


@pytest.mark.parametrize("options", [[], ["--addon", str(SAME)]], ids=["blind", "editing"])
def test_torture(tmp_path: Path, options: list[str]) -> None:
    relay = shlex.join([sys.executable, "-m", "mcpsniff", "http", "--no-transcript", "--quiet", *options])
    results = tmp_path / "results.json"
    script = REPO / "tests" / "torture" / "http_torture.py"
    start = relay + " {upstream} --listen 127.0.0.1:{port} --dir {capture}"
    words = [sys.executable, str(script), "--start", start, "--idle", "1", "--json", str(results)]
    done = subprocess.run(words, capture_output=True, text=True, env=environment(), cwd=tmp_path, timeout=115)
    rows = {row["test"]: row for row in json.loads(results.read_text())["rows"]}
    assert len(rows) >= 40, done.stdout
    assert [row for row in rows.values() if row["result"] == "FAIL"] == [], done.stdout
    assert done.returncode == 0
    assert rows["b event framings"]["detail"] == "13/13 byte-identical"
    assert rows["headers to server"]["detail"] == "changed or lost: none; added: none"
    assert rows["server cut off mid-chunk"]["detail"] == "client sees: IncompleteReadError"
