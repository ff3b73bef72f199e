"""The head: paths for copying, and what a server wrote at length in a few lines."""

from pathlib import Path
from typing import Any

from mcpsniff.capture.reader import open_capture
from mcpsniff.transcript.session import Session, write
from mcpsniff.transcript.terminal import plain
from mcpsniff.transcript.text import TextTranscript
from tests.capture.capture_files import save
from tests.sessions import records
from tests.transcript.golden import SAID
from tests.transcript.rendering import markdown, text


def with_instructions(instructions: str) -> list[Any]:
    import json

    direction, raw = SAID[1]
    message = json.loads(raw)
    message["result"]["instructions"] = instructions
    return records(SAID[0], (direction, message))


LONG = "Use the tools.\n\n" + "\n".join(f"{n}. Do\tthis, then do that.\n" for n in range(40))


def test_instructions_take_two_lines_at_most() -> None:
    shown = text(with_instructions(LONG), width=60)
    start = shown.index("  instructions")
    lines = shown[start:].split("\n\n")[0].splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("  instructions  Use the tools. 0. Do this, then")
    assert lines[1].endswith("…")
    assert lines[1].rstrip("…").split()[-1] in LONG.replace(",", " ").split()
    assert "\\n" not in shown[start : start + 300]
    assert "instructions  Short.\n" in text(with_instructions(" Short.\n"))


def test_instructions_in_markdown() -> None:
    [line] = [line for line in markdown(with_instructions(LONG)).splitlines() if "**instructions:**" in line]
    assert line.endswith("…`")
    assert len(line) < 250
    assert "\\n" not in line


def test_the_path_of_the_capture_can_be_copied(tmp_path: Path) -> None:
    folder = tmp_path / ("a folder-with-a-long-name " * 4)
    folder.mkdir()
    path = save(folder, "time-20261129T100000.000Z-1.mcpcap")
    for width in (20, 40, 100):
        out: list[str] = []
        session = Session(open_capture(str(path)))
        write(session, TextTranscript(plain(out.append), width))
        assert any(line.strip().removeprefix("capture").strip() == str(path) for line in out)


def test_marks_below_a_line_of_a_traceback_stay_below_it() -> None:
    source = "    " + "x = first_function(" + "a" * 70 + ") + second(b)"
    marks = " " * source.index("second") + "^^^^^^^^^"
    lines = text(records(("err", source), ("err", marks))).splitlines()
    shown = [line.split("│")[1].removeprefix(" ") for line in lines if "│" in line]
    half = len(shown) // 2
    assert "".join(shown[:half]) == source
    assert (shown[half], shown[half + 1].index("^")) == ("", shown[1].index("second"))


def test_a_modern_server_is_known_by_its_answer() -> None:
    """The head waits for it: there is no handshake that would be over."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    result = {
        "resultType": "complete",
        "supportedVersions": ["2026-07-28"],
        "capabilities": {"prompts": {}},
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "rail", "version": "7"}},
    }
    shown = text(
        records(
            ("c2s", {"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": meta}}),
            ("s2c", {"jsonrpc": "2.0", "id": 1, "result": result}),
        )
    )
    assert "  server        rail 7\n" in shown
    assert "  server can    prompts\n" in shown


def test_a_capture_in_parts_says_how_many(tmp_path: Path) -> None:
    path = save(tmp_path, "a.mcpcap", records(*SAID[:2]))
    save(tmp_path, "a.0002.mcpcap", records(*SAID[2:4])[3:], part=2)
    out: list[str] = []
    write(Session(open_capture(str(path))), TextTranscript(plain(out.append), 100))
    assert [line for line in out if "in 2 parts" in line.split("  ")[-1]]
