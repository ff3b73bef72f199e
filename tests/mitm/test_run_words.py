"""What `mcpsniff run` says at the end: what it saw, or why that may be nothing and what to do (cases B127, B129)."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mcpsniff.proxy import client_advice
from mcpsniff.proxy.client_node import heeds_proxies, node_of
from tests.mitm.fake_run import Seen
from tests.proxy.wrapped import environment


def said(folder: Path, command: list[str], *options: str, env: dict[str, str] | None = None, **seen: Any) -> list[str]:
    words = [sys.executable, "-m", "tests.mitm.fake_run", "--dir", str(folder / "c"), *options, "--", *command]
    kept = {name: value for name, value in environment().items() if "PROXY" not in name.upper()}
    done = subprocess.run(
        words, capture_output=True, text=True, env={**kept, **(env or {}), "FAKE_SEEN": json.dumps(seen)}, timeout=60
    )
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert [line for line in lines if not line.startswith("mcpsniff: ")] == []
    told = [line.removeprefix("mcpsniff: ") for line in lines]
    return [line for line in told if not line.startswith("writing the transcript")]  # said on a slow machine


def program(folder: Path, name: str, script: str) -> Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def test_what_was_seen_and_where_it_is(tmp_path: Path) -> None:
    lines = said(tmp_path, ["true"], connections=2, recorded=5, unrecorded=1, hosts=["a.test", "b.test", "a.test"])
    assert lines[0].startswith("recording to ")
    assert lines[1] == "saw 5 HTTP exchanges of MCP with a.test, b.test; 1 other exchange passed unrecorded"
    assert lines[2].startswith("recorded in ")
    assert lines[3].startswith("transcript in ")
    assert len(lines) == 4
    assert len(list((tmp_path / "c").glob("*.md"))) == 1


def test_an_empty_capture_is_never_told_as_no_traffic(tmp_path: Path) -> None:
    lines = said(tmp_path, ["true"])
    assert lines[1].startswith("nothing is recorded: the client ran for ")
    assert lines[1].endswith(" s and never used the proxy that it was given, so what it said is unknown")
    whole = "\n".join(lines)
    assert all(
        way in whole
        for way in (
            "mcpsniff forward",
            "mcpsniff http URL",
            "mcpsniff stdio --",
            "mcpsniff run -- npx mcp-remote URL --enable-proxy",
            "running already",
        )
    )


def test_nothing_of_mcp_among_what_passed(tmp_path: Path) -> None:
    lines = said(tmp_path, ["true"], connections=3, unrecorded=7, others=[f"h{n}.test" for n in range(7)])
    assert (
        "made 3 connections through the proxy to h0.test, h1.test, h2.test, h3.test, h4.test and 2 more, " in lines[1]
    )
    assert lines[1].endswith("none with MCP in it")
    assert not any("ignore" in line for line in lines)
    lines = said(tmp_path, ["true"], "--only", "a.test", "--only", "b.test", connections=1, others=["c.test"])
    assert lines[1].endswith("none with MCP to a.test or b.test (--only); it went to c.test: add --only c.test")
    assert len(lines) == 2
    assert "mcpsniff stdio" not in "".join(lines)
    lines = said(tmp_path, ["true"], "--only", "a.test", connections=1, others=["https://a.test"], unrecorded=1)
    assert lines[1].endswith("through the proxy to https://a.test, none with MCP in it")
    assert "mcpsniff stdio --" in lines[2]


def test_which_options_take_what_only_left_out() -> None:
    others = ["http://localhost:18001", "[::1]:80", "https://b.test", "https://a.test:444"]
    seen = Seen(connections=4, others=others)
    text = client_advice.unseen(seen, ["localhost:1", "*.test"], 1)
    assert text.endswith("http://localhost:18001, [::1]:80: add --only localhost:18001 --only [::1]:80"), text


def test_a_server_that_was_not_reached_may_have_been_meant_for_mcp(tmp_path: Path) -> None:
    trouble = "cannot reach the upstream https://a.test (a.test: Name or service not known). Is the server running?"
    lines = said(tmp_path, ["true"], connections=1, others=["a.test:443"], troubles=[trouble])
    assert lines[1] == trouble
    assert lines[2].startswith("nothing is recorded: the client ran for 0.")
    end = "through the proxy to a.test:443; what it had to say to a server that was not reached is unknown"
    assert lines[2].endswith(end)
    assert not any("none with MCP" in line for line in lines)


def test_a_client_that_refuses_our_certificate_is_named(tmp_path: Path) -> None:
    seen = {"connections": 1, "refusals": [("mcp.test", "unknown ca"), ("mcp.test", "unknown ca")]}
    lines = said(tmp_path, ["true"], **seen)
    assert lines[1].startswith("the client refused mcpsniff's certificate for mcp.test (unknown ca): ")
    assert "mcpsniff ca" in lines[1]
    assert lines[2].startswith("nothing is recorded: ")
    assert sum("refused" in line for line in lines) == 1
    assert not any(line.startswith("- ") for line in lines)


def test_a_client_that_is_likely_to_refuse_our_certificate_is_named(tmp_path: Path) -> None:
    seen = {"connections": 1, "suspects": [("mcp.test:443", "hung up during the TLS handshake")]}
    lines = said(tmp_path, ["true"], **seen, disagreed=[("b.test:443", "did not agree on TLS (no shared cipher)")])
    assert lines[1].startswith(
        "the client hung up during the TLS handshake for mcp.test:443: it may not trust mcpsniff's certificates, "
    )
    assert "mcpsniff ca" in lines[1]
    assert lines[2] == "the client did not agree on TLS (no shared cipher) for b.test:443"
    assert lines[3].endswith("; what it had to say to mcp.test:443, b.test:443 is unknown")
    assert len(lines) == 4


def test_requests_that_did_not_get_there_are_counted_apart(tmp_path: Path) -> None:
    seen = {"connections": 1, "recorded": 1, "answered": 1, "unreached": ["https://a.test"]}
    assert said(tmp_path, ["true"], **seen)[1] == "saw 1 HTTP request of MCP that did not reach https://a.test"


def test_requests_that_mcpsniff_answered_itself_are_told_with_the_reason(tmp_path: Path) -> None:
    why = "a client was answered 400: what the client sends cannot be read as HTTP/1.1 (Bad HTTP request line)"
    lines = said(tmp_path, ["true"], connections=2, rejected=2, rejections=[why])
    assert lines[1] == why
    assert lines[2].endswith("none to a server; mcpsniff itself answered 2 requests")
    assert len(lines) == 3


def test_quiet_says_only_what_is_amiss(tmp_path: Path) -> None:
    assert said(tmp_path, ["true"], "--quiet", connections=1, recorded=1, hosts=["a.test"]) == []
    (line,) = said(tmp_path, ["true"], "--quiet")
    assert line.startswith("nothing is recorded: ")


def test_a_proxy_of_the_users_that_is_not_used_is_named(tmp_path: Path) -> None:
    lines = said(tmp_path, ["true"], env={"https_proxy": "http://corp:3128"})
    assert lines[1] == "https_proxy of the environment is replaced: mcpsniff itself connects to servers directly"


def test_what_is_shown_of_hosts_does_nothing_to_a_terminal() -> None:
    seen = Seen(connections=1, others=["a\x1b[2J.test"], refusals=[("b\x1b[2J.test", "no\x07")])
    text = client_advice.unseen(seen, [], 1) + "".join(client_advice.refused(seen))
    assert text.isprintable()


@pytest.mark.parametrize(("version", "old"), [("v20.20.2", True), ("v22.20.0", True), ("v22.21.0", False)])
def test_an_old_node_is_named(tmp_path: Path, version: str, old: bool) -> None:
    node = program(tmp_path, "node", f'[ "$1" = --version ] && echo {version}')
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    for command in (["node", "client.mjs"], [str(node)], ["env", "A=1", "node"]):
        (named,) = [line for line in said(tmp_path, command, env=env) if "Node.js" in line] or [""]
        assert bool(named) == old
        assert not old or f"{version[1:6]} ({node}), which ignores proxy settings" in named


@pytest.mark.parametrize(
    ("version", "heeds"),
    [
        ((18, 20), False),
        ((20, 20), False),
        ((22, 20), False),
        ((22, 21), True),
        ((23, 11), False),
        ((24, 0), True),
        ((25, 1), True),
    ],
)
def test_which_versions_heed_proxies(version: tuple[int, int], heeds: bool) -> None:
    assert heeds_proxies(version) is heeds


def test_the_node_of_a_script_and_of_a_package_runner(tmp_path: Path) -> None:
    node = program(tmp_path, "node", "exit 0")
    program(tmp_path, "npx", "exit 0")
    script = tmp_path / "claude"
    script.write_text("#!/usr/bin/env node\n")
    script.chmod(0o755)
    env = {"PATH": str(tmp_path)}
    assert node_of(["npx", "-y", "x"], env) == node_of(["claude"], env) == str(node)
    assert node_of([str(script)], env) == str(node)
    assert node_of(["sh", "-c", "node"], {"PATH": "/usr/bin:/bin"}) is None


def test_a_node_that_does_not_answer_is_passed_over(tmp_path: Path) -> None:
    program(tmp_path, "node", '[ -z "$1" ] || echo nonsense')
    lines = said(tmp_path, ["node"], env={"PATH": f"{tmp_path}:{os.environ['PATH']}"})
    assert not any("Node.js" in line for line in lines)
    assert any(line.startswith("nothing is recorded") for line in lines)
