"""Masking in the relay: what passes is untouched, what is kept has no secret, and pipes pay nothing for it."""

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.proxy.masking import request, response
from tests.proxy.relayed import Peer, Relay, Upstream
from tests.proxy.wrapped import REPO, environment

ASK = request(
    b"client_secret=EX-TOK-5&code=EX-TOK-6",
    "/token?access_token=EX-TOK-1",
    [
        "Authorization: bearer EX-TOK-2",
        "Cookie: sid=EX-TOK-3",
        "Referer: http://h.test/?code=EX-TOK-4",
        "Content-Type: application/x-www-form-urlencoded",
    ],
)
ANSWER = response(
    b'{"refresh_token":"EX-TOK-9","authed_user":{"access_token":"EX-TOK-10"}}',
    ["Set-Cookie: sid=EX-TOK-7", "Location: /cb#id_token=EX-TOK-8", "Content-Type: application/json"],
)


def kept(folder: Path) -> bytes:
    """All that is in a folder."""
    return b"\n".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("pieces", [1, 40])
def test_b144_no_secret_is_kept_and_none_is_changed_on_the_wire(tmp_path: Path, keep: bool, pieces: int) -> None:
    came: list[bytes] = []
    arrived = threading.Event()

    def serve(peer: Peer) -> None:
        peer.next_message()
        came.append(peer.came)
        for n in range(0, len(ANSWER), len(ANSWER) // pieces):
            peer.send(ANSWER[n : n + len(ANSWER) // pieces])
        arrived.set()

    with Upstream(serve) as upstream, Relay(tmp_path, upstream.url, *["--keep-secrets"] * keep, quiet=False) as relay:
        with relay.connect() as client:
            for n in range(0, len(ASK), len(ASK) // pieces):
                client.send(ASK[n : n + len(ASK) // pieces])
            assert client.read_all() == ANSWER
        assert came == [ASK]
        assert relay.stop() == 0
    assert (b"EX-TOK" in kept(relay.folder)) == keep
    shown = subprocess.run(
        [sys.executable, "-m", "mcpsniff", "show", str(relay.capture().path), "--format", "json"],
        env=environment(),
        capture_output=True,
        check=True,
    )
    assert (b"EX-TOK" in shown.stdout) == keep
    assert (b"EX-TOK" in relay.out + relay.err) <= keep
    masks = [(channel, body["what"]) for _, kind, channel, body in relay.capture().records if kind == "mask"]
    assert len(masks) == (0 if keep else 10)


def test_the_salt_lies_with_the_captures_and_only_where_it_is_needed(tmp_path: Path) -> None:
    def serve(peer: Peer) -> None:
        peer.next_message()
        peer.send(response(b"{}"))

    prints = []
    for ask in (request(), request(headers=["Cookie: a"]), request(headers=["Cookie: a"])):
        with Upstream(serve) as upstream, Relay(tmp_path, upstream.url) as relay:
            relay.ask(ask)
            assert relay.stop() == 0
        captures = sorted(relay.folder.glob("*.mcpcap"), key=lambda path: path.stat().st_mtime_ns)
        assert (relay.folder / ".salt").exists() == (ask != request())
        prints += [line.split('"fp":')[1] for line in captures[-1].read_text().splitlines() if '"mask"' in line]
    assert len(prints) == 2
    assert prints[0] == prints[1]
    assert stat.S_IMODE((relay.folder / ".salt").stat().st_mode) == 0o600


def test_a_wrapped_server_pays_nothing_for_it(tmp_path: Path) -> None:
    script = (
        "import sys\n"
        "from mcpsniff.proxy.recording import Recording\n"
        "options = {'quiet': True, 'label': 'x', 'dir': sys.argv[1], 'output': None, 'keep_secrets': False,"
        " 'no_transcript': True}\n"
        "recording = Recording('stdio', ['x'], options)\n"
        "recording.start()\n"
        "recording.recorder.mark('open', 0, {'kind': 'stdin', 'dir': 'c2s', 'conn': 0})\n"
        "recording.recorder.note(0, b'Authorization: Bearer x')\n"
        "recording.finish()\n"
        "print(*sorted(name for name in sys.modules if name in {'hmac', 'hashlib', 'mcpsniff.wire.http1',"
        " 'mcpsniff.proxy.mask', 'mcpsniff.proxy.mask_http', 'mcpsniff.capture.salt'}))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], cwd=REPO, env=dict(os.environ), capture_output=True, text=True
    )
    assert (done.stderr, done.stdout.strip()) == ("", "")
    assert b"Authorization: Bearer x" in kept(tmp_path)
    assert not (tmp_path / ".salt").exists()
