"""`mcpsniff show --at N`: one event whole, its exchange, its bytes."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from mcpsniff.capture.records import Record
from mcpsniff.transcript.at import EventPage, find_event
from mcpsniff.transcript.at.hexpane import hex_lines, odd_places
from mcpsniff.transcript.layout import length
from mcpsniff.transcript.safe import cells
from mcpsniff.transcript.terminal import plain
from tests.capture.capture_files import encoded, save
from tests.captures.samples import FOLDER, NAMES, make
from tests.cli.running import on_terminal, run
from tests.sessions import OPENS, records


def sample(name: str) -> str:
    return str(FOLDER / f"{name}.mcpcap")


def opened(name: str) -> Any:
    capture = make.opened(name, (FOLDER / f"{name}.mcpcap").read_bytes())
    capture.keep()
    return capture


def page(name: str, number: int, width: int = 100, *, hexadecimal: bool = False) -> str:
    out: list[str] = []
    capture = opened(name)
    EventPage(plain(out.append), width, hexadecimal=hexadecimal).show(find_event(capture, number), capture.header)
    return "".join(out)


def numbers(name: str) -> list[int]:
    lines = run("show", sample(name), "--format", "json").out.splitlines()
    return [event["n"] for line in lines if "n" in (event := json.loads(line))]


def test_a_message_with_all_of_its_facts() -> None:
    ran = run("show", sample("faults"), "--at", "18")
    assert (ran.status, ran.err) == (0, "")
    assert ran.out == page("faults", 18)
    for line in (
        "#18 response",
        "  time        0.048  2026-11-29 10:25:00.048000 UTC",
        "  direction   server to client",
        '  id          "2"',
        "  revision    2025-11-25",
        "  fact        id-type-differs  #16",
        "  frame       #17, line, 84 bytes without its end",
        "✗ error MCP405 response-id-type, by the server",
        "What it refers to",
    ):
        assert line in ran.out.splitlines(), line
    assert re.search(r"bytes       channel 1, byte \d+ up to \d+", ran.out)
    assert "The SDK clients tolerate a string of digits" in ran.out, "the whole explanation"
    assert "#16  ┬   → tools/call test" in ran.out
    assert '"text": "12 passed"' in ran.out
    assert "Bytes" not in ran.out


def test_the_partners_in_order() -> None:
    shown = page("faults", 31)
    exchange = shown.split("The whole exchange\n")[1]
    assert re.findall(r"^ +[\d.]+ +#(\d+)", exchange, re.MULTILINE) == ["22", "24", "26", "29", "31"]
    assert "exchange    of request #22: cancelled" in shown
    assert exchange.count('"jsonrpc"') == 4, "whole, and its own payload stands above"
    assert "MCP422" in exchange
    for other in (22, 24, 26, 29):
        again = page("faults", other).split("The whole exchange\n")[1]
        assert re.findall(r"^ +[\d.]+ +#(\d+)", again, re.MULTILINE) == ["22", "24", "26", "29", "31"]


@pytest.mark.parametrize("name", NAMES)
def test_every_number_has_a_page_and_no_other(name: str) -> None:
    there = numbers(name)
    assert there == list(range(1, len(there) + 1))
    for number in there:
        for width in (20, 100):
            shown = page(name, number, width, hexadecimal=number % 2 == 0)
            assert shown.startswith(f"#{number} ")
            assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b\u202e]", shown), number
            facts = shown.split("\nPayload\n")[0].split("\nWhat was sent\n")[0]
            if "\nBytes (" not in facts and "The whole exchange" not in facts:
                assert max(map(cells, facts.splitlines())) <= width, number


@pytest.mark.parametrize(
    ("at", "says"),
    [
        ("0", "there is no #0 in this capture: its numbers go from 1 to 59"),
        ("60", "there is no #60 in this capture: its numbers go from 1 to 59"),
        ("9" * 18, "its numbers go from 1 to 59"),
        ("x", "--at needs a number of the transcript, such as 12, not 'x'"),
        ("-1", "--at needs a number"),
        ("1.5", "--at needs a number"),
        ("٣", "--at needs a number"),
        ("9" * 5000, "--at needs a number"),
        ("", "--at needs a number"),
    ],
)
def test_an_unknown_number(at: str, says: str) -> None:
    ran = run("show", sample("faults"), "--at", at)
    assert (ran.status, ran.out) == (2, "")
    assert says in ran.err
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--format", "html"], "not as html"),
        (["--format", "markdown"], "not as markdown"),
        (["--filter", "kind:error"], "use one of them"),
        ([sample("noise")], "name one"),
    ],
)
def test_what_does_not_go_together(words: list[str], says: str) -> None:
    ran = run("show", sample("faults"), "--at", "3", *words)
    assert (ran.status, ran.out) == (2, "")
    assert says in ran.err


def test_a_number_sign_is_taken_and_a_capture_without_events(tmp_path: Path) -> None:
    assert run("show", sample("faults"), "--at", "#18").out == page("faults", 18)
    empty = save(tmp_path, "empty.mcpcap", OPENS)
    ran = run("show", str(empty), "--at", "1")
    assert (ran.status, "it has no events" in ran.err) == (2, True)


def test_standard_input_is_read_twice() -> None:
    ran = run("show", "-", "--at", "18", stdin=(FOLDER / "faults.mcpcap").read_bytes())
    assert (ran.status, ran.out) == (0, page("faults", 18))


def test_bytes_that_are_no_text_are_shown_in_hexadecimal() -> None:
    shown = page("hostile", 15)
    assert "Bytes (4 bytes that are no text, and what is near them)\n  …\n" in shown
    line = next(line for line in shown.splitlines() if "caf" in line and "|" in line)
    offset = int(line.split()[0], 16)
    stream = b"".join(r.body for r in opened("hostile").records() if r.kind == "chunk" and r.channel == 1)
    [(span, _)] = find_event(opened("hostile"), 15).pieces
    piece = stream[offset : min(offset + 16, span.stop)]
    assert line == f"  {offset:08x}  {piece[:8].hex(' ')}  {piece[8:].hex(' ')}" + (16 - len(piece)) * "   " + (
        "  |" + "".join(chr(b) if 32 <= b < 127 else "." for b in piece) + "|"
    )
    assert "e9" in line


def test_hex_shows_all_bytes_with_the_line_end() -> None:
    for name in ("faults", "hostile"):
        for number in (4, 11, 15):
            shown = page(name, number, hexadecimal=True)
            shown_lines = re.findall(r"^  ([0-9a-f]{8})  ([0-9a-f ]{47,48}) +\|", shown, re.MULTILINE)
            data = bytes.fromhex("".join(text for _, text in shown_lines))
            [(span, _)] = find_event(opened(name), number).pieces
            chunks = [record for record in opened(name).records() if record.kind == "chunk"]
            stream = b"".join(record.body for record in chunks if record.channel == span.channel)
            assert data == stream[span.start : span.stop]
            assert data.endswith(b"\n")
            assert int(shown_lines[0][0], 16) == span.start


def test_stderr_and_ends_have_pages() -> None:
    events = [json.loads(line) for line in run("show", sample("faults"), "--format", "json").out.splitlines()]
    stderr = [event["n"] for event in events if event["type"] == "stderr"]
    [end] = [event["n"] for event in events if event["type"] == "close" and event["how"] == "killed"]
    assert "What was written\n  builder: cannot allocate\n" in page("faults", stderr[-1])
    shown = page("faults", end)
    assert shown.startswith(f"#{end} close: the server was killed")
    assert "  signal      9\n" in shown
    assert "  left open   3 requests\n" in shown
    assert "MCP119" in shown


def test_bytes_of_a_capture_whose_first_part_is_gone(tmp_path: Path) -> None:
    """Offsets go on where the first part ended."""
    channels = {"1": {"kind": "stdout", "dir": "s2c", "conn": 0, "offset": 4096}}
    said = Record(5000, "chunk", 1, b'{"jsonrpc":"2.0","method":"notifications/\xff"}\n')
    head, _, rest = encoded([said], part=2).partition(b"\n")
    path = tmp_path / "late.0002.mcpcap"
    path.write_bytes(json.dumps({**json.loads(head), "channels": channels}).encode() + b"\n" + rest)
    ran = run("show", str(path), "--at", "2")
    assert ran.status == 0
    assert "byte 4,096 up to" in ran.out
    assert "  00001020  " in ran.out


def test_as_json() -> None:
    ran = run("show", sample("faults"), "--at", "31", "--format", "json")
    lines = [json.loads(line) for line in ran.out.splitlines()]
    messages = [line["n"] for line in lines if line["type"] == "message"]
    assert messages == [22, 24, 26, 29, 31]
    assert all("payload" in line for line in lines if line["type"] == "message")
    assert [line["request"] for line in lines if line["type"] == "exchange"] == [22]
    assert {line["code"] for line in lines if line["type"] == "finding"} == {"MCP422", "MCP430"}
    assert {line["n"] for line in lines if line["type"] == "frame"} == {
        line["frame"] for line in lines if line["type"] == "message"
    }


def test_much_progress_is_cut(tmp_path: Path) -> None:
    said: list[tuple[str, object]] = [
        ("c2s", {"jsonrpc": "2.0", "id": 1, "method": "y/x", "params": {"_meta": {"progressToken": 1}}})
    ]
    progress = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 1, "progress": 0}}
    said += [("s2c", {**progress, "params": {"progressToken": 1, "progress": n}}) for n in range(500)]
    said.append(("s2c", {"jsonrpc": "2.0", "id": 1, "result": {"content": []}}))
    path = save(tmp_path, "much.mcpcap", records(*said))
    out = run("show", str(path), "--at", "2").out
    assert "… 300 more progress notifications" in out
    assert out.count('notifications/progress"') == 200
    assert "answered #2" in out


def test_on_a_terminal_it_has_colours_and_fits() -> None:
    for columns in (20, 44, 60, 90):
        ran = on_terminal("show", sample("hostile"), "--at", "15", "--hex", columns=columns)
        assert ran.status == 0
        bare = re.sub(r"\x1b\[[0-9;]*m", "", ran.out)
        assert "\x1b[" in ran.out
        pane = bare.split("\nBytes")[1].split("\n✗")[0].splitlines()[1:]
        assert max(map(cells, [*bare.split("\nPayload")[0].splitlines(), *pane])) <= columns
        assert ("|" in "".join(pane)) == (columns > 20)


def lines(data: bytes, width: int = 78, *, everything: bool = True, offset: int = 0) -> list[str]:
    made = list(hex_lines(data, offset, width, everything=everything))
    assert all(length(line) <= width for line in made)
    return ["".join(text for _, text in line) for line in made]


def test_hexadecimal_as_hexdump_shows_it() -> None:
    assert lines(b'{"jsonrpc":"2.0"}\n', offset=16) == [
        '00000010  7b 22 6a 73 6f 6e 72 70  63 22 3a 22 32 2e 30 22  |{"jsonrpc":"2.0"|',
        "00000020  7d 0a                                             |}.|",
    ]
    assert lines(b"\xff" * 9, 45) == [
        "00000000  ff ff ff ff ff ff ff ff  |........|",
        "00000008  ff                       |.|",
    ]
    assert lines(b"abc", 18) == ["00000000  61 62", "00000002  63   "]
    assert lines(b"") == []
    assert lines(b"text", everything=False) == []
    only_near = lines(b"a" * 160 + b"\x00" + b"b" * 160, everything=False)
    assert [line[:8].strip() for line in only_near] == ["…", "00000090", "000000a0", "000000b0", "…"]
    assert len(lines(b"\x00" * 100_000, everything=False)) == 49


@pytest.mark.parametrize(
    ("data", "places"),
    [
        (b'{"a":"\xe4\xb8\xad\t"}\n', []),
        (b"\xef\xbb\xbf{}", [0, 1, 2]),
        (b"a\r\n", [1]),
        (b"\x1b[31m", [0]),
        (b"caf\xe9 \xf0\x9f\x8c", [3, 5, 6, 7]),
        (b"\xc2\x9b", [0, 1]),
        (b"\x7f", [0]),
        (b"\xed\xa0\x80", [0, 1, 2]),
    ],
)
def test_what_is_no_text(data: bytes, places: list[int]) -> None:
    assert odd_places(data) == places
