"""What goes in comes out, and is in the capture: the reported faults of framing and byte fidelity (class A)."""

import hashlib
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.proxy.wrapped import Wrapped, case_pieces, environment


def echo(tmp_path: Path, pieces: list[bytes], pause: float = 0.0) -> None:
    """Send pieces through the wrapper to `cat` and back: identical twice, and recorded identically twice."""
    sent = b"".join(pieces)
    with Wrapped(tmp_path, ["cat"]) as wrapped:
        if pause:
            wrapped.send(*pieces, pause=pause)
        sender = wrapped.send_aside(*([] if pause else pieces))
        received = wrapped.read_all()
        sender.join()
        assert wrapped.wait() == 0
    assert received == sent
    capture = wrapped.capture()
    assert capture.data(0) == sent
    assert capture.data(1) == sent
    assert not capture.damaged
    assert not [record for record in capture.records if record[1] == "gap"]
    times = [record[0] for record in capture.records]
    assert times == sorted(times)


def test_b01_a_frame_longer_than_64_kib(tmp_path: Path) -> None:
    echo(tmp_path, case_pieces("B01"))


def test_b03_endless_output_without_a_newline(tmp_path: Path) -> None:
    mebibytes = 160
    tail = b'\n{"jsonrpc":"2.0","id":1,"result":{}}\n'
    script = (
        f"import os\nfor _ in range({mebibytes}): os.write(1, b'a' * (1 << 20))\nos.write(1, {tail!r})\nos.read(0, 1)"
    )
    with Wrapped(tmp_path, [sys.executable, "-c", script]) as wrapped:
        counted, last = 0, b""
        while not last.endswith(tail):
            piece = wrapped.stdout.read(1 << 20)
            assert piece
            counted += len(piece)
            last = (last + piece)[-len(tail) :]
        size = int(subprocess.check_output(["ps", "-o", "rss=", "-p", str(wrapped.process.pid)]))
        assert wrapped.end() == 0
    assert counted == (mebibytes << 20) + len(tail)
    assert size < 60 << 10  # KiB; all of it in memory would be three times that
    assert wrapped.capture().data(1)[-len(tail) - 1 :] == b"a" + tail


def test_b04_a_frame_of_forty_megabytes(tmp_path: Path) -> None:
    echo(tmp_path, case_pieces("B04"))


def test_b05_raw_u2028_in_a_string(tmp_path: Path) -> None:
    echo(tmp_path, case_pieces("B05"))


def test_b07_a_character_cut_by_a_read_boundary(tmp_path: Path) -> None:
    echo(tmp_path, case_pieces("B07"), pause=0.05)


def test_b08_bytes_that_are_not_utf8(tmp_path: Path) -> None:
    echo(tmp_path, case_pieces("B08"))


def test_b10_a_byte_order_mark_is_relayed(tmp_path: Path) -> None:
    echo(tmp_path, case_pieces("B10"))


def test_b11_crlf_line_ends_stay(tmp_path: Path) -> None:
    echo(tmp_path, case_pieces("B11"))


def test_b13_a_banner_on_stdout(tmp_path: Path) -> None:
    echo(tmp_path, case_pieces("B13"))


@pytest.mark.parametrize("byte_by_byte", [False, True])
def test_b15_frames_however_they_are_cut(tmp_path: Path, byte_by_byte: bool) -> None:
    pieces = case_pieces("B15")
    if byte_by_byte:
        pieces = [bytes([byte]) for byte in b"".join(pieces)]
    echo(tmp_path, pieces, pause=0.001)


def test_b17_large_frames_of_many_writers_do_not_interleave(tmp_path: Path) -> None:
    frames = [b'{"jsonrpc":"2.0","id":%d,"method":"%s"}\n' % (n, b"abcdefgh" * (16 << 10)) for n in range(16)]
    turn = threading.Lock()
    order: list[bytes] = []

    with Wrapped(tmp_path, ["cat"]) as wrapped:

        def write(frame: bytes) -> None:
            with turn:
                order.append(frame)
                wrapped.send(frame)

        threads = [threading.Thread(target=write, args=(frame,)) for frame in frames]
        reader_got: list[bytes] = []
        reader = threading.Thread(target=lambda: reader_got.append(wrapped.read_all()))
        for thread in [*threads, reader]:
            thread.start()
        for thread in threads:
            thread.join()
        assert wrapped.end() == 0
        reader.join()
    digests = [hashlib.sha256(frame + b"\n").digest() for frame in reader_got[0].split(b"\n")[:-1]]
    assert digests == [hashlib.sha256(frame).digest() for frame in order]
    assert wrapped.capture().data(0) == wrapped.capture().data(1) == b"".join(order)


def test_b115_the_locale_does_not_matter(tmp_path: Path) -> None:
    frames = [b'{"jsonrpc":"2.0","id":1,"result":{"t":"(\xe2\x88\x8a)"}}\n']
    frames += [b'{"jsonrpc":"2.0","id":%d,"result":{}}\n' % n for n in range(2, 12)]
    env = environment(LC_ALL="C", PYTHONUTF8="0", PYTHONIOENCODING="ascii")
    with Wrapped(tmp_path, ["cat"], "--label", "∊", env=env) as wrapped:
        wrapped.send(*frames)
        assert wrapped.end() == 0
    capture = wrapped.capture()
    assert capture.data(1).split(b"\n")[:-1] == [frame.rstrip() for frame in frames]
    assert "∊" in capture.path.read_bytes().decode("utf-8")
