"""The torture script for HTTP with TLS between the relay and its server; what is about transfer framing is left out."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mitm.certificates import Authority
from tests.proxy.wrapped import REPO, environment

OTHERS = {
    "a endpoint, absolute URL",  # names the plain server behind the terminator
    "server down",  # the terminator is up then
}
"""Tests of their own stand in `test_reverse.py`."""


@pytest.mark.parametrize("edits", [False, True])
def test_torture(tmp_path: Path, edits: bool) -> None:
    (tmp_path / "same.py").write_text("def mcp_edit(message):\n    return message\n")
    authority = Authority(tmp_path)
    terminated = [sys.executable, "-m", "tests.mitm.terminator", "{uport}", str(authority.issue()), str(authority.file)]
    relay = [
        sys.executable,
        "-m",
        "mcpsniff",
        "http",
        "{tls}",
        "--upstream-ca",
        "{ca}",
        "--no-transcript",
        "--quiet",
        *(["--addon", str(tmp_path / "same.py")] if edits else []),
    ]
    start = shlex.join([*terminated, "--", *relay, "--listen", "127.0.0.1:{port}", "--dir", "{capture}"])
    results = tmp_path / "results.json"
    script = REPO / "tests" / "torture" / "http_torture.py"
    words = [sys.executable, str(script), "--start", start, "--idle", "1", "--json", str(results)]
    env = environment(PYTHONPATH=str(REPO))
    done = subprocess.run(words, capture_output=True, text=True, env=env, cwd=tmp_path, timeout=115)
    rows = {row["test"]: row for row in json.loads(results.read_text())["rows"]}
    assert len(rows) >= 40, done.stdout
    assert [row for row in rows.values() if row["result"] == "FAIL" and row["test"] not in OTHERS] == [], done.stdout
    assert rows["b event framings"]["detail"] == "13/13 byte-identical"
    assert rows["headers to server"]["detail"] == "changed or lost: none; added: none"
    assert rows["server cut off mid-chunk"]["detail"] == "client sees: IncompleteReadError"
