"""Laws of the decoder: no input breaks it, reads do not matter, deadlines have their own time, numbers never repeat."""

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mcpsniff.capture.records import Header, Record
from mcpsniff.checks import Finding
from mcpsniff.decoder import Decoder, Event
from mcpsniff.protocol.message import Message
from mcpsniff.wire.frames import Frame
from tests.sessions import OPENS, decode, end, exchanges, findings, line, messages, records

SNIPPETS = [
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}\n',
    b'{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","serverInfo":{"name":"s","version":"1"}}}\n',
    b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n',
    b'{"jsonrpc":"2.0","id":2,"method":"tools/list"}\n',
    b'{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"x","inputSchema":{"type":"object"}},{"name":5},7]}}\n',
    b'{"jsonrpc":"2.0","id":"2","method":"tools/call","params":{"name":"x","_meta":{"progressToken":1}}}\n',
    b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":NaN}}\n',
    b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"2"}}\n',
    b'[{"jsonrpc":"2.0","id":3,"method":"ping"},{"jsonrpc":"2.0","id":3,"result":null},1]\n',
    b'{"jsonrpc":"2.0","id":null,"error":{"code":"x"}}\n',
    b'{"jsonrpc":"2.0","id":[1],"method":5,"params":"p"}\n{"jsonrpc":2,"error":"text","result":{}}\n',
    b'{\n"jsonrpc":"2.0",\n"id":9,\n"method":"ping"}\n',
    b"Server listening\r\n",
    b"\xef\xbb\xbf\xff\n\n \n",
    b"[" * 300 + b"]" * 300 + b"\n",
    b'{"a":1,"a":2}{}\n42\n',
]
WIRE = st.lists(st.sampled_from(SNIPPETS) | st.binary(max_size=8), max_size=8).map(b"".join)
STREAMS = st.tuples(WIRE, WIRE, st.binary(max_size=10))


def without_times(event: Event) -> object:
    if isinstance(event, Frame):
        return replace(event, t_first=0, t_last=0)
    if isinstance(event, Message):
        return event.n, event.kind, event.id, event.method, event.raw, event.flaws, event.batch, event.exchange
    if isinstance(event, Finding):
        return event.code, event.at, event.blame, event.spans
    return type(event).__name__, event.n


@given(STREAMS, st.lists(st.integers(0, 2), max_size=40), st.integers(1, 9))
def test_decoding_does_not_depend_on_the_reads(
    streams: tuple[bytes, bytes, bytes], turns: list[int], size: int
) -> None:
    """Each stream whole, one after another, against each stream in pieces of ``size``."""

    def feed(pieces: int) -> list[object]:
        cut = [
            Record(0, "chunk", channel, stream[start : start + pieces])
            for channel, stream in enumerate(streams)
            for start in range(0, len(stream), pieces)
        ]
        return [without_times(event) for event in decode([*OPENS, *cut, *end(1)])]

    assert feed(1 << 20) == feed(size)


@given(st.lists(st.tuples(st.sampled_from([0, 1, 2, 9]), WIRE, st.integers(0, 90_000_000)), max_size=10))
def test_no_bytes_raise_and_numbers_count_up(said: list[tuple[int, bytes, int]]) -> None:
    t, made = 0, list(OPENS)
    for channel, data, pause in said:
        t += pause
        made.append(Record(t, "chunk", channel, data))
    events = decode([*made, *end(t)])
    numbers = [event.n for event in events if not isinstance(event, Finding)]

    assert numbers == list(range(1, len(numbers) + 1))
    for finding in findings(events):
        assert 0 < finding.at <= len(numbers)
        assert finding.code != "MCP901", finding.text


@given(
    st.lists(
        st.builds(
            Record,
            st.integers(0, 10**9),
            st.sampled_from(["open", "close", "gap", "mask", "rewrite", "comment", "chunk"]),
            st.none() | st.integers(-1, 3),
            st.dictionaries(
                st.sampled_from(["kind", "dir", "how", "status", "sent", "start", "length", "bytes"]),
                st.none() | st.integers() | st.text(max_size=3) | st.lists(st.integers(), max_size=2),
            ),
        ),
        max_size=8,
    )
)
def test_no_record_raises(made: list[Record]) -> None:
    def sound(record: Record) -> Record:
        return record._replace(body=b"{}\n") if record.kind == "chunk" else record

    decode([sound(record) for record in made])


def test_a_deadline_fires_at_its_own_time_before_the_next_record() -> None:
    said = records(("c2s", {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}))
    late = [Record(90_000_000, "chunk", 1, line({"jsonrpc": "2.0", "id": 1, "result": {}}))]
    at_once = decode([*said, *late])

    (slow,) = [finding for finding in findings(at_once) if finding.name == "request-slow"]
    assert slow.t == 60_001_000
    assert slow.at == messages(at_once)[0].n
    decoder = Decoder()
    told = decode(said, finish=False, decoder=decoder)
    for t in range(0, 90_000_000, 250_000):
        told += decoder.advance(t)
    told += decode(late, decoder=decoder)
    assert [without_times(event) for event in told] == [without_times(event) for event in at_once]


def test_progress_keeps_a_request_alive() -> None:
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"_meta": {"progressToken": 1}}}
    sign = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 1, "progress": 1}}
    made = [*OPENS, Record(0, "chunk", 0, line(call)), Record(50_000_000, "chunk", 1, line(sign))]

    assert not [one for one in findings(decode([*made, *end(100_000_000)])) if one.name == "request-slow"]
    assert [one for one in findings(decode([*made, *end(120_000_000)])) if one.name == "request-slow"]


def test_messages_know_the_revision_that_governs_them() -> None:
    modern: dict[str, Any] = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    events = decode(
        records(
            ("c2s", {"jsonrpc": "2.0", "id": 0, "method": "ping"}),
            ("c2s", {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-03-26"}}),
            ("s2c", {"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": "2025-06-18"}}),
            ("c2s", {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}),
            ("c2s", {"jsonrpc": "2.0", "id": 3, "method": "tools/list", "params": {"_meta": modern}}),
            ("s2c", {"jsonrpc": "2.0", "id": 2, "result": {"tools": []}}),
            ("s2c", {"jsonrpc": "2.0", "id": 3, "result": {"tools": []}}),
        )
    )
    revisions = [message.revision for message in messages(events)]

    assert revisions == [
        None,
        "2025-03-26",
        "2025-03-26",
        "2025-06-18",
        "2026-07-28",
        "2025-06-18",
        "2026-07-28",
    ]
    assert "result-type-missing" in messages(events)[-1].flaws
    assert "result-type-missing" not in messages(events)[-2].flaws


def test_a_later_part_goes_on_with_channels_and_offsets() -> None:
    channels = {"1": {"kind": "stdout", "dir": "s2c", "conn": 0, "offset": 500}}
    header = Header("run", 2, "2026-11-29T10:00:00.000000Z", channels=channels)
    decoder = Decoder(header, joined_late=True)
    events = decode([Record(5, "chunk", 1, b'"result":{}}\n{"jsonrpc":"2.0","id":7,"result":{}}\n')], decoder=decoder)
    torn, whole = messages(events)

    assert torn.frame.flaws == ("gap",)
    assert whole.frame.spans[0].start == 513
    assert findings(events) == []


def test_the_memory_of_a_decoder_does_not_grow_with_finished_traffic() -> None:
    import tracemalloc

    decoder = Decoder()
    decode(OPENS, finish=False, decoder=decoder)

    def talk(first: int, count: int) -> None:
        for number in range(first, first + count):
            t = number * 100
            ask = b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"_meta":{"progressToken":%d}}}\n'
            decoder.feed(Record(t, "chunk", 0, ask % (number, number)))
            decoder.feed(Record(t, "chunk", 1, b'{"jsonrpc":"2.0","id":%d,"result":{}}\n' % number))

    tracemalloc.start()
    talk(0, 12_000)
    before = tracemalloc.get_traced_memory()[0]
    talk(12_000, 8_000)
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()

    # The window of the latest 10,000 exchanges turns over; 8,000 more must not add what 8,000 exchanges take.
    assert grown < 8_000 * 50
    assert exchanges(decoder.finish()) == []
