"""Who may import whom, and what the process on the wire must never load."""

import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[1]
HEAVY = ("mitmproxy", "aiohttp", "rich", "asyncio", "ssl", "click")


def test_data_flows_one_way() -> None:
    lint = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([lint, "--no-cache", "--no-logo"], cwd=REPO, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("module", ["mcpsniff.proxy.stdio", "mcpsniff.proxy.tcp", "mcpsniff.__main__"])
def test_a_module_of_the_wire_process_loads_nothing_heavy(module: str) -> None:
    """Start-up stands in front of every server that a client launches."""
    if not (REPO / (module.replace(".", "/") + ".py")).exists():
        pytest.skip(f"{module} does not exist yet")
    script = f"import sys, {module}; print(*sorted(set({HEAVY!r}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], cwd=REPO, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == ""


def test_the_hygiene_test_can_fail() -> None:
    script = f"import sys, asyncio; print(*sorted(set({HEAVY!r}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "asyncio" in done.stdout.split()
