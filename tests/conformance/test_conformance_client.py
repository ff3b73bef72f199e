"""The client scenarios of the conformance suite, with a client on the Python SDK under `mcpsniff run` and without.

The servers are the suite's own. Every verdict is the same, those about OAuth included, and each run is captured.
"""

import json
import re
import shlex
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.conformance.test_conformance import SUITES, Verdicts, node
from tests.mitm.test_run import Captured
from tests.peers.harness import REPO, SDK1, missing
from tests.proxy.wrapped import environment

SUITE = SUITES / "conformance-0.1" / "dist" / "index.js"
CLIENT = [str(SDK1 / "python"), str(REPO / "tests" / "conformance" / "client.py")]
SECONDS = 240
STAMP = re.compile(r"-\d{4}-\d\d-\d\dT[^/]*$")
# What this client or its SDK does not do: the metadata of 2025-03-26 at a root of their own, and cross-app access.
FAILING = {"auth/2025-03-26-oauth-metadata-backcompat", "auth/cross-app-access-complete-flow"}
pytestmark = [pytest.mark.peers, pytest.mark.timeout(2 * SECONDS + 20)]


def verdicts(command: list[str], folder: Path) -> Verdicts:
    """What the suite finds, by scenario. A warning is about how long the client took, which the machine decides."""
    if not SUITE.exists() or not (SDK1 / "python").exists():
        missing("the conformance suite, or the MCP Python SDK 1.x")
    options = ["--suite", "all", "--timeout", "120000", "--output-dir", str(folder)]
    words = [node(), str(SUITE), "client", "--command", shlex.join(command), *options]
    done = subprocess.run(
        words,
        cwd=folder.parent,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        env=environment(PYTHONWARNINGS="ignore"),
    )
    assert "=== SUITE SUMMARY ===" in done.stdout, done.stderr
    found: Verdicts = {}
    for path in folder.rglob("checks.json"):
        scenario = STAMP.sub("", str(path.parent.relative_to(folder)))
        checks = json.loads(path.read_text("utf-8"))
        found[scenario] = Counter(
            (check["id"], check["status"].replace("WARNING", "SUCCESS"))
            for check in checks
            if check["status"] != "INFO"
        )
    return found


def test_every_verdict_is_the_same_under_mcpsniff_run(tmp_path: Path) -> None:
    captures = tmp_path / "captures"
    run = [sys.executable, "-m", "mcpsniff", "run", "--quiet", "--no-transcript", "--dir", str(captures), "--"]
    direct = verdicts(CLIENT, tmp_path / "direct")
    through = verdicts([*run, *CLIENT], tmp_path / "through")

    failed = {name for name, checks in direct.items() if any(status == "FAILURE" for _, status in checks)}
    assert failed == FAILING
    assert len(direct) == 26
    assert through == direct

    recorded = [Captured(path) for path in captures.glob("*.mcpcap")]
    assert len(recorded) == len(direct)
    asked = [
        [
            body["meta"]["start"]
            for _, kind, _, body in each.records
            if kind == "open" and body["kind"] == "http-request"
        ]
        for each in recorded
    ]
    assert all(any(" /mcp" in line or line.startswith("POST /") for line in lines) for lines in asked)
    assert sum(any("/token" in line for line in lines) for lines in asked) > 15
