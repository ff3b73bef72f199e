"""Public bug cases of content codings (tests/cases/cases.json) at the level of bytes; each test bears its number.

That the wire is left alone is for the tests of the relay; here the copy is decoded.
"""

import gzip
import json
import tracemalloc
import zlib
from pathlib import Path

import pytest

from mcpsniff.wire.body import BodyDecoder
from mcpsniff.wire.frames import DEFAULT_FRAME_LIMIT, Span
from mcpsniff.wire.sse import EventSplitter

CASES = {
    case["id"]: case
    for case in json.loads((Path(__file__).parents[1] / "cases" / "cases.json").read_text(encoding="utf-8"))
}
SIZES = [1, 3, 1000, 65_536, 1 << 30]


def unpack(coding: str, body: bytes, size: int) -> tuple[bytes, tuple[str, ...]]:
    decoder = BodyDecoder(coding)
    out = b"".join([decoder.feed(body[at : at + size]) for at in range(0, len(body), size)])
    return out + decoder.finish(), decoder.flaws


@pytest.mark.parametrize("size", SIZES)
def test_B55_each_event_of_a_compressed_stream_at_its_time(size: int) -> None:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    decoder, splitter = BodyDecoder("gzip", stream=True), EventSplitter(1, "s2c", coding="gzip")
    position, times = 0, []
    for t in range(0, 2_500_000, 500_000):
        event = b'event: message\ndata: {"jsonrpc":"2.0","method":"notifications/message","params":{"t":%d}}\n\n' % t
        flushed = packer.compress(event) + packer.flush(zlib.Z_SYNC_FLUSH)
        for at in range(0, len(flushed), size):
            coded = flushed[at : at + size]
            spans = (Span(1, position, position + len(coded)),)
            position += len(coded)
            for frame in splitter.feed(t, decoder.feed(coded), spans):
                times.append(frame.t_last)
                assert json.loads(frame.payload)["params"] == {"t": t}
                assert frame.coding == "gzip"
                assert frame.spans[0].start < frame.spans[-1].stop <= position

    assert len(times) == CASES["B55"]["expect"]["event_count"]
    assert times == [0, 500_000, 1_000_000, 1_500_000, 2_000_000]
    assert decoder.flaws == ()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd"])
def test_B57_a_coding_that_was_declared_and_not_applied(coding: str, size: int) -> None:
    ping = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    (flag,) = CASES["B57"]["expect"]["flags"]

    assert unpack(coding, ping, size) == (ping, (flag.replace("_", "-"),))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("number", ["B69", "B117"])
def test_B69_B117_the_text_is_derived_and_the_coded_bytes_stay(number: str, size: int) -> None:
    """The decoder gets a copy; what Content-Length counts is what it was fed."""
    text = b'{"jsonrpc":"2.0","id":1,"result":{}}'
    body = gzip.compress(text)
    kept = bytes(body)

    assert CASES[number]["class"] in "EH"
    assert unpack("gzip", body, size) == (text, ())
    assert body == kept
    assert len(body) != len(text)


@pytest.fixture(scope="module")
def bomb() -> bytes:
    """4 GiB of zeros, coded to 4 MB: 4096 times the same block of 1 MiB, as a compressor that is flushed makes it."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = packer.compress(bytes(1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    checksum, size = 0xD202EF8D, (4 << 30) % (1 << 32)
    head = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"
    return head + block * 4096 + packer.flush() + checksum.to_bytes(4, "little") + size.to_bytes(4, "little")


@pytest.mark.parametrize("nested", [False, True], ids=["gzip", "gzip in gzip"])
def test_B148_four_gibibytes_in_four_megabytes(bomb: bytes, nested: bool) -> None:
    expect = CASES["B148"]["expect"]
    body, codings = (gzip.compress(bomb), "gzip, gzip") if nested else (bomb, "gzip")
    decoder = BodyDecoder(codings)
    tracemalloc.start()
    out = sum(len(decoder.feed(body[at : at + 65_536])) for at in range(0, len(body), 65_536)) + len(decoder.finish())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert 3_900_000 < len(bomb) < 4_500_000
    assert out == DEFAULT_FRAME_LIMIT
    assert decoder.flaws == tuple(flag.replace("_", "-") for flag in expect["flags"])
    assert peak < expect["max_rss_growth_mib"] << 20


def test_B148_as_an_event_stream(bomb: bytes) -> None:
    decoder, splitter = BodyDecoder("gzip", stream=True), EventSplitter(1, "s2c", coding="gzip")
    tracemalloc.start()
    for at in range(0, len(bomb), 65_536):
        splitter.feed(0, decoder.feed(bomb[at : at + 65_536]), (Span(1, at, at + 65_536),))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    (frame,) = splitter.finish(1)

    assert decoder.flaws == ("decode-cap",)
    assert frame.flaws == ("unterminated",)
    assert peak < CASES["B148"]["expect"]["max_rss_growth_mib"] << 20


@pytest.mark.parametrize("size", SIZES)
def test_B149_two_members_are_joined(size: int) -> None:
    assert unpack("gzip", gzip.compress(b"first, ") + gzip.compress(b"second"), size) == (b"first, second", ())


@pytest.mark.parametrize("size", SIZES)
def test_B149_half_a_body_gives_half_the_text_and_says_so(size: int) -> None:
    text = "".join(f"line {number * number}\n" for number in range(400)).encode()
    coded = gzip.compress(text)
    out, flaws = unpack("gzip", coded[: len(coded) // 2], size)

    assert flaws == ("coding-cut",)
    assert text.startswith(out)
    assert len(out) > len(text) // 4


@pytest.mark.parametrize("size", SIZES)
def test_B149_zeros_after_the_end_are_noted(size: int) -> None:
    assert unpack("gzip", gzip.compress(b"first") + bytes(10), size) == (b"first", ("coding-trailing",))
