"""The torture script, whole: its fake server misbehaves in 30 ways behind the wrapper, plain and in edit mode."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.proxy.wrapped import REPO, environment


@pytest.mark.parametrize("options", [[], ["--addon", str(REPO / "tests" / "relay" / "same.py")]])
def test_torture(tmp_path: Path, options: list[str]) -> None:
    words = [sys.executable, "-m", "mcpsniff", "stdio", "--no-transcript", "--grace", "2", *options, "--dir"]
    wrap = shlex.join(words)
    results = tmp_path / "results.json"
    script = REPO / "tests" / "torture" / "stdio_torture.py"
    words = [sys.executable, str(script), "--wrap", wrap + " {capture} --", "--json", str(results)]
    done = subprocess.run(words, capture_output=True, text=True, env=environment(), cwd=tmp_path, timeout=115)
    rows = {row["test"]: row for row in json.loads(results.read_text())["rows"]}
    assert len(rows) >= 32, done.stdout
    assert [row for row in rows.values() if row["result"] == "FAIL"] == [], done.stdout
    assert done.returncode == 0
    assert rows["server closes stdout, lives on"]["detail"] == "client sees end of stream"
    assert rows["f server killed by SIGKILL"]["detail"] == "wrapper exit 137"
    assert rows["k last one in capture"]["detail"].startswith("yes")
    assert rows["stderr passed on"]["detail"] == "in capture: yes"
