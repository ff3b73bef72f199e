"""Content codings: whole and in streams, nested, cut, damaged, joined, not applied, and those that expand too far."""

import base64
import gzip
import random
import subprocess
import sys
import tracemalloc
import zlib
from collections.abc import Callable, Iterable
from typing import Any

import brotli
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mcpsniff.wire.body import HISTORY, MAX_CODINGS, BodyDecoder
from mcpsniff.wire.codings import CODINGS, zstd_module

zstd = zstd_module()
TEXT = b'{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"' + b"sunny, " * 40 + b'"}]}}'
LIMIT = 1 << 20


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush()


PACK: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "raw deflate": raw_deflate,
    "br": brotli.compress,
    "zstd": zstd.compress,
}


def declared(name: str) -> str:
    return name.removeprefix("raw ")


def unpack(codings: str | None, chunks: Iterable[bytes], **options: Any) -> tuple[bytes, tuple[str, ...]]:
    decoder = BodyDecoder(codings, **options)
    out = b"".join([decoder.feed(chunk) for chunk in chunks]) + decoder.finish()
    assert decoder.feed(b"more") in (b"", b"more")
    return out, decoder.flaws


def singly(data: bytes) -> list[bytes]:
    return [data[at : at + 1] for at in range(len(data))]


def always(codings: str | None, data: bytes, **options: Any) -> tuple[bytes, tuple[str, ...]]:
    """What a body is decoded to, after it was seen to be the same for every cut in two and byte by byte."""
    whole = unpack(codings, [data], **options)
    assert unpack(codings, singly(data), **options) == whole
    for cut in range(0, len(data), max(1, len(data) // 60)):
        assert unpack(codings, [data[:cut], data[cut:]], **options) == whole
    return whole


# -- what healthy servers send ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PACK)
@pytest.mark.parametrize("text", [TEXT, b"{}", b"", bytes(range(256)) * 20], ids=["json", "short", "empty", "binary"])
def test_a_body_in_one_coding(name: str, text: bytes) -> None:
    assert always(declared(name), PACK[name](text)) == (text, ())


@pytest.mark.parametrize("codings", [None, "", "identity", " , identity,"])
def test_a_body_without_a_coding_passes_through(codings: str | None) -> None:
    assert always(codings, TEXT) == (TEXT, ())
    assert BodyDecoder(codings).coding is None


@pytest.mark.parametrize("codings", ["gzip", "GZIP", " gzip , identity", "x-gzip", ",gzip"])
def test_the_ways_to_name_a_coding(codings: str) -> None:
    assert unpack(codings, [gzip.compress(TEXT)]) == (TEXT, ())


def test_the_last_coding_was_applied_last() -> None:
    coded = gzip.compress(brotli.compress(zstd.compress(TEXT)))

    assert always("zstd, br, gzip", coded) == (TEXT, ())
    assert BodyDecoder("zstd, BR, identity, gzip").coding == "zstd, br, gzip"


@pytest.mark.parametrize("name", PACK)
def test_a_declared_coding_without_a_body_is_no_fault(name: str) -> None:
    """The answer to HEAD, a 304, or just nothing."""
    assert unpack(declared(name), [b"", b""]) == (b"", ())


def test_a_zstd_frame_after_a_skippable_one() -> None:
    skippable = b"\x5f\x2a\x4d\x18\x03\0\0\0abc"

    assert always("zstd", skippable + zstd.compress(b"one, ") + zstd.compress(b"two")) == (b"one, two", ())


def gzip_flush() -> Callable[[bytes], bytes]:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    return lambda data: packer.compress(data) + packer.flush(zlib.Z_SYNC_FLUSH)


def deflate_flush() -> Callable[[bytes], bytes]:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return lambda data: packer.compress(data) + packer.flush(zlib.Z_SYNC_FLUSH)


def brotli_flush() -> Callable[[bytes], bytes]:
    packer = brotli.Compressor()
    return lambda data: packer.process(data) + packer.flush()


def zstd_flush() -> Callable[[bytes], bytes]:
    packer = zstd.ZstdCompressor()
    return lambda data: packer.compress(data, packer.FLUSH_BLOCK)


FLUSHING = {"gzip": gzip_flush, "deflate": deflate_flush, "br": brotli_flush, "zstd": zstd_flush}


@pytest.mark.parametrize("name", FLUSHING)
@pytest.mark.parametrize("size", [0, 1, 7, 1000, 70_000])
def test_what_was_flushed_comes_out_at_once(name: str, size: int) -> None:
    flush = FLUSHING[name]()
    decoder = BodyDecoder(name, stream=True)
    for number in range(5):
        event = b'event: message\ndata: {"n":%d,"x":"%b"}\n\n' % (number, b"x" * size)

        assert b"".join(decoder.feed(byte) for byte in singly(flush(event))) == event
        assert decoder.flaws == ()
    assert (decoder.finish(), decoder.flaws) == (b"", ("coding-cut",))


@pytest.mark.parametrize("inner", FLUSHING)
@pytest.mark.parametrize("outer", FLUSHING)
def test_what_was_flushed_comes_out_at_once_through_two_codings(inner: str, outer: str) -> None:
    first, second = FLUSHING[inner](), FLUSHING[outer]()
    decoder = BodyDecoder(f"{inner}, {outer}", stream=True)
    for number in range(3):
        assert decoder.feed(second(first(b"data: %d\n\n" % number))) == b"data: %d\n\n" % number


# -- what is not as declared ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["compress", "aws-chunked", "gzip;q=1", "gzip br", "*"])
def test_an_unknown_coding_leaves_the_bytes_as_they_are(name: str) -> None:
    assert always(name, TEXT) == (TEXT, ("coding-unknown",))


def test_codings_around_an_unknown_one_are_removed() -> None:
    assert always("gzip, foo, br", brotli.compress(b"foo bytes")) == (b"foo bytes", ("coding-unknown",))


def test_five_codings_are_removed_and_not_six() -> None:
    coded = TEXT
    for _ in range(MAX_CODINGS):
        coded = gzip.compress(coded)

    assert always(", ".join(["gzip"] * MAX_CODINGS), coded) == (TEXT, ())
    assert always(", ".join(["gzip"] * (MAX_CODINGS + 1)), coded) == (coded, ("coding-unknown",))


def test_a_coding_whose_package_is_missing_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "brotli", None)

    assert unpack("br", [b"\x0b\x00\x80a\x03"]) == (b"\x0b\x00\x80a\x03", ("coding-unknown",))


@pytest.mark.parametrize("name", CODINGS)
@pytest.mark.parametrize(
    "plain",
    [TEXT, b"{}", b"[]", b" ", b"data: {}\n\n", b": ping\r\n\r\n", b'{"x":"8H(Xh"}', b"(not zstd)", b"P", b"(", b"xyz"],
)
def test_a_coding_that_was_not_applied(name: str, plain: bytes) -> None:
    assert always(name, plain) == (plain, ("coding-mismatch",))


@pytest.mark.parametrize("name", ["br", "deflate"])
def test_another_coding_than_the_declared_one(name: str) -> None:
    coded = gzip.compress(TEXT)

    assert always(name, coded) == (coded, ("coding-mismatch",))


def test_one_of_two_codings_was_not_applied() -> None:
    assert always("gzip, br", gzip.compress(TEXT)) == (TEXT, ("coding-mismatch",))
    assert always("gzip, br", brotli.compress(TEXT)) == (TEXT, ("coding-mismatch",))


# -- cut, damaged, joined ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PACK)
def test_a_body_cut_at_every_place_gives_what_was_readable(name: str) -> None:
    coded = PACK[name](TEXT)
    lengths = []
    for cut in range(1, len(coded)):
        out, flaws = unpack(declared(name), [coded[:cut]])
        if flaws == ("coding-mismatch",):  # the first bytes alone may look like text
            assert (out, cut < 16) == (coded[:cut], True)
            continue
        assert flaws == ("coding-cut",)
        assert TEXT.startswith(out)
        lengths.append(len(out))
    assert lengths == sorted(lengths)


@pytest.mark.parametrize("name", PACK)
def test_a_damaged_body_gives_what_was_readable(name: str) -> None:
    text = "".join(f"line {number * number}\n" for number in range(1500)).encode()
    coded = bytearray(PACK[name](text))
    coded[len(coded) // 2 :] = bytes(~byte & 0xFF for byte in coded[len(coded) // 2 :])
    out, flaws = always(declared(name), bytes(coded))

    assert flaws in (("coding-damaged",), ("coding-cut",))
    if name != "zstd":  # a zstd block is all or nothing
        assert out[: len(text) // 4] == text[: len(text) // 4]


def test_a_wrong_checksum_is_damage_and_the_body_is_there() -> None:
    coded = gzip.compress(TEXT)

    assert always("gzip", coded[:-8] + b"\0\0\0\0" + coded[-4:]) == (TEXT, ("coding-damaged",))


@pytest.mark.parametrize("name", PACK)
@pytest.mark.parametrize("tail", [b"\0" * 10, b"x", b"\x1f", b"\x28\xb5"])
def test_bytes_after_the_end_are_noted(name: str, tail: bytes) -> None:
    assert always(declared(name), PACK[name](TEXT) + tail) == (TEXT, ("coding-trailing",))


def test_bytes_after_the_end_in_the_outer_and_in_the_inner_coding() -> None:
    assert always("br, gzip", gzip.compress(brotli.compress(TEXT)) + b"\0") == (TEXT, ("coding-trailing",))
    assert always("br, gzip", gzip.compress(brotli.compress(TEXT) + b"\0")) == (TEXT, ("coding-trailing",))
    out, flaws = always("br, gzip", gzip.compress(brotli.compress(TEXT)[:-1]) + b"\0")
    assert (TEXT.startswith(out), flaws) == (True, ("coding-trailing", "coding-cut"))


@pytest.mark.parametrize("name", ["gzip", "zstd"])
def test_members_are_joined(name: str) -> None:
    assert always(name, PACK[name](b"one, ") + PACK[name](b"") + PACK[name](b"two")) == (b"one, two", ())
    assert always(name, PACK[name](b"one, ") + PACK[name](b"two")[:-3])[1] == ("coding-cut",)


def test_a_gap_ends_decoding_without_blame() -> None:
    coded = gzip.compress(TEXT)
    decoder = BodyDecoder("gzip")
    decoder.feed(coded[:20])
    decoder.gap()

    assert (decoder.feed(coded[25:]), decoder.finish(), decoder.flaws) == (b"", b"", ())
    plain = BodyDecoder(None)
    plain.gap()
    assert plain.feed(b"a") == b"a"


def test_damage_behind_the_history_loses_a_block_at_most() -> None:
    text = base64.b64encode(random.Random(1).randbytes(2 * HISTORY))
    coded = zlib.compress(text, 1)
    assert len(coded) > HISTORY + 20_000
    broken = coded[: HISTORY + 10_000] + random.Random(2).randbytes(100_000)
    whole, flaws = unpack("deflate", [broken])
    halves, same = unpack("deflate", singly(broken))

    assert flaws == same == ("coding-damaged",)
    assert text.startswith(whole)
    assert halves.startswith(whole)


# -- laws -------------------------------------------------------------------------------------------------------------

BODIES = st.binary(max_size=60) | st.text(max_size=40).map(str.encode)


@st.composite
def coded_bodies(draw: st.DrawFn) -> tuple[str, bytes]:
    """Some codings and bytes that are about right for them: cut, changed, joined, with a tail, or none of it."""
    names = draw(st.lists(st.sampled_from(sorted(PACK)), min_size=1, max_size=3))
    data = draw(BODIES)
    for name in names:
        if draw(st.integers(0, 4)):
            data = PACK[name](data) + (PACK[name](data) if draw(st.integers(0, 5)) == 5 else b"")
        if draw(st.integers(0, 3)) == 3:
            at = draw(st.integers(0, len(data)))
            data = data[:at] + draw(st.binary(max_size=3)) + data[at + draw(st.integers(0, 40)) :]
    return ", ".join(map(declared, names)), data


@given(coded_bodies(), st.data(), st.sampled_from([3, 40, LIMIT]), st.booleans())
@settings(max_examples=400)
def test_the_output_does_not_depend_on_the_reads(
    body: tuple[str, bytes], data: st.DataObject, limit: int, stream: bool
) -> None:
    codings, coded = body
    cuts = sorted(data.draw(st.lists(st.integers(0, len(coded)), max_size=4)))
    chunks = [coded[a:b] for a, b in zip([0, *cuts], [*cuts, len(coded)], strict=True)]
    whole = unpack(codings, [coded], limit=limit, stream=stream)

    assert unpack(codings, chunks, limit=limit, stream=stream) == whole
    assert unpack(codings, singly(coded), limit=limit, stream=stream) == whole


@given(st.lists(st.sampled_from([*sorted(CODINGS), "identity", "foo"]), max_size=7), st.lists(st.binary(max_size=40)))
@example(["br"], [b"\x1b\x00"])
def test_any_bytes_are_taken(names: list[str], chunks: list[bytes]) -> None:
    whole = unpack(",".join(names), [b"".join(chunks)])

    assert unpack(",".join(names), chunks) == whole


@given(BODIES, st.sampled_from(sorted(PACK)))
def test_what_was_coded_is_decoded(data: bytes, name: str) -> None:
    assert unpack(declared(name), [PACK[name](data)]) == (data, ())


# -- expansion --------------------------------------------------------------------------------------------------------


def zeros(name: str, size: int) -> bytes:
    """Zero bytes, coded, without ever holding them all."""
    if name == "br":
        packer = brotli.Compressor(quality=5)
        return b"".join([packer.process(bytes(1 << 20)) for _ in range(size >> 20)]) + packer.finish()
    if name == "zstd":
        packer = zstd.ZstdCompressor()
        return b"".join([packer.compress(bytes(1 << 20)) for _ in range(size >> 20)]) + packer.flush()
    packer = zlib.compressobj(9, zlib.DEFLATED, {"gzip": 31, "deflate": 15, "raw deflate": -15}[name])
    return b"".join([packer.compress(bytes(1 << 20)) for _ in range(size >> 20)]) + packer.flush()


@pytest.mark.parametrize("stream", [False, True], ids=["body", "stream"])
@pytest.mark.parametrize("name", ["gzip", "deflate", "raw deflate", "br", "zstd"])
def test_an_expansion_is_capped_while_inflating(name: str, stream: bool) -> None:
    bomb = zeros(name, 256 << 20)
    tracemalloc.start()
    out, flaws = unpack(declared(name), [bomb], limit=LIMIT, stream=stream)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert flaws == ("decode-cap",)
    assert len(out) == LIMIT if not stream else LIMIT <= len(out) <= 16 * LIMIT
    assert peak < 40 * LIMIT
    assert unpack(declared(name), [bomb[:5], bomb[5:]], limit=LIMIT, stream=stream) == (out, flaws)


@pytest.mark.parametrize(("size", "flaws"), [(LIMIT, ()), (LIMIT + 1, ("decode-cap",))])
@pytest.mark.parametrize("name", PACK)
def test_the_limit_itself_is_no_expansion_too_far(name: str, size: int, flaws: tuple[str, ...]) -> None:
    assert unpack(declared(name), [PACK[name](bytes(size))], limit=LIMIT) == (bytes(LIMIT), flaws)


def test_a_long_stream_that_expands_as_text_does_is_not_capped() -> None:
    flush = gzip_flush()
    decoder = BodyDecoder("gzip", limit=1000, stream=True)
    event = b"event: message\ndata: " + TEXT + b"\n\n"
    for _ in range(2000):
        assert decoder.feed(flush(event)) == event
    assert decoder.flaws == ()


def test_a_zstd_frame_that_wants_too_much_memory_is_capped() -> None:
    packer = zstd.ZstdCompressor(options={zstd.CompressionParameter.window_log: 27})

    assert always("zstd", packer.compress(TEXT) + packer.flush()) == (b"", ("decode-cap",))


def test_packages_of_codings_are_loaded_when_they_are_met() -> None:
    script = (
        "import sys; from mcpsniff.wire.body import BodyDecoder; BodyDecoder('gzip').feed(b'x');"
        "print({'brotli', 'backports.zstd', 'compression.zstd'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "set()"
