"""Without an option that asks for it nothing of edit mode is loaded on the way of requests."""

import signal
import socket
import subprocess
import sys
from pathlib import Path

from tests.proxy.relayed import JSON, Upstream, echo, post
from tests.proxy.wrapped import PATIENCE, environment


def test_a_relay_without_hooks_loads_none_of_it(tmp_path: Path) -> None:
    words = ["http", "--quiet", "--no-transcript", "--dir", str(tmp_path)]
    with Upstream(echo) as upstream:
        relay = subprocess.Popen(
            [sys.executable, "-X", "importtime", "-m", "mcpsniff", *words, upstream.url],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(),
            text=True,
        )
        assert relay.stdout is not None
        port = relay.stdout.readline().strip().rsplit(":", 1)[1].split("/")[0]
        with socket.create_connection(("127.0.0.1", int(port)), PATIENCE) as client:
            client.sendall(post(b"{}", JSON.decode().strip()))
            assert client.recv(1 << 16).startswith(b"HTTP/1.1 200")
        relay.send_signal(signal.SIGTERM)
        _, told = relay.communicate(timeout=PATIENCE)
    assert relay.returncode == 0
    loaded = {line.rsplit("|", 1)[-1].strip() for line in told.splitlines() if line.startswith("import time:")}
    assert "mcpsniff.proxy.carrier" in loaded
    assert [name for name in sorted(loaded) if name.startswith(("mcpsniff.hooks", "mcpsniff.proxy.relay"))] == []
