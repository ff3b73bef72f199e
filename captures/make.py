"""Build the sample captures and their transcripts from the dialogues beside this file, the same on every machine.

    python captures/make.py            write what is stale
    python captures/make.py --check    change nothing; print a diff and exit 1 when something is stale

A dialogue is written by hand, in the notation of tests/dialogue.py; besides, ``@let $NAME TEXT`` says what ``$NAME``
stands for in the lines after it. In its margin stand the findings that are expected. Times come from the dialogue, and
all that a recorder would take from its machine comes from the table below.

Exit status 2: a dialogue cannot be read.
"""

import argparse
import difflib
import sys
from collections.abc import Iterable, Iterator
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from mcpsniff.capture.reader import Capture, open_stream  # noqa: E402
from mcpsniff.capture.records import Record  # noqa: E402
from mcpsniff.capture.writer import CaptureWriter  # noqa: E402
from mcpsniff.transcript.head import Entry  # noqa: E402
from mcpsniff.transcript.markdown import write_markdown  # noqa: E402
from mcpsniff.transcript.rows import Row  # noqa: E402
from mcpsniff.transcript.session import Session, write  # noqa: E402
from mcpsniff.transcript.terminal import plain  # noqa: E402
from mcpsniff.transcript.text import TextTranscript  # noqa: E402
from tests.capture.capture_files import storable  # noqa: E402
from tests.dialogue import DialogueError, play  # noqa: E402

EXCERPT_WIDTH = 96


class Sample(NamedTuple):
    """What is in a sample's header, and what happened to its file."""

    name: str
    run: str
    started: str
    argv: tuple[str, ...] = ()
    cwd: str = "/home/demo"
    label: str = ""
    """Its name, unless something else is given."""
    torn: int = 0
    """Bytes at its end that were never written."""
    path: str = ""
    """Over HTTP: where the server is spoken to."""


SAMPLES = (
    Sample(
        "weather",
        "01KB7SAMP0000000000000000A",
        "2026-11-29T10:00:00.000000Z",
        ("python", "weather_server.py", "--城市", "全部"),
        "/home/demo/天气",
        label="天气",
    ),
    Sample(
        "noise",
        "01KB7SAMP0000000000000000B",
        "2026-11-29T10:05:00.000000Z",
        ("python", "-m", "notes.server"),
        "/home/demo/notes",
    ),
    Sample(
        "hostile",
        "01KB7SAMP0000000000000000C",
        "2026-11-29T10:10:00.000000Z",
        ("./hostile", "--name=\x1b[31m<b>red</b>"),
        "/home/demo",
    ),
    Sample(
        "torn",
        "01KB7SAMP0000000000000000D",
        "2026-11-29T10:15:00.000000Z",
        ("npx", "-y", "@example/backup-server"),
        "/home/demo",
        torn=32,
    ),
    Sample(
        "modern",
        "01KB7SAMP0000000000000000E",
        "2026-11-29T10:20:00.000000Z",
        ("uvx", "rail-server"),
        "/home/demo",
    ),
    Sample(
        "faults",
        "01KB7SAMP0000000000000000F",
        "2026-11-29T10:25:00.000000Z",
        ("node", "builder.js"),
        "/home/demo/app",
    ),
    Sample("weather-sse", "01KB7SAMP0000000000000000G", "2026-11-29T10:30:00.000000Z", path="/sse"),
    Sample("notes", "01KB7SAMP0000000000000000H", "2026-11-29T10:35:00.000000Z", path="/mcp"),
    Sample("rail-http", "01KB7SAMP0000000000000000J", "2026-11-29T10:40:00.000000Z", path="/mcp"),
    Sample(
        "edited",
        "01KB7SAMP0000000000000000K",
        "2026-11-29T10:45:00.000000Z",
        ("python", "shop_server.py"),
        "/home/demo/shop",
    ),
)


def dialogue(name: str) -> str:
    """Return a sample's dialogue with its ``@let`` lines carried out."""
    values: dict[str, str] = {}
    lines = []
    for line in (HERE / f"{name}.dialogue").read_text(encoding="utf-8").splitlines():
        if line.startswith("@let "):
            _, variable, text = line.split(" ", 2)
            values[variable] = text
            continue
        lines.append(_carried_out(line, values))
    return "\n".join(lines)


def _carried_out(line: str, values: dict[str, str]) -> str:
    for variable, text in values.items():
        line = line.replace(variable, text)
    return line


def capture_bytes(sample: Sample) -> bytes:
    """Return the bytes of a sample's capture."""
    return _encoded(sample, play(dialogue(sample.name)).records)


def _encoded(sample: Sample, records: list[Record]) -> bytes:
    """Return the file that the writer would leave."""
    header = {
        "run": sample.run,
        "started": sample.started,
        "transport": "http" if sample.path else "stdio",
        "label": sample.label or sample.name,
        **({"argv": list(sample.argv)} if sample.argv else {}),
        "cwd": sample.cwd,
        "by": "captures/make.py",
    }
    if sample.path:
        header |= {"upstream": f"http://127.0.0.1:8000{sample.path}", "listen": f"http://127.0.0.1:9000{sample.path}"}
    written = BytesIO()
    writer = CaptureWriter(-1, f"{sample.name}.mcpcap", header, write=lambda _descriptor, data: written.write(data))
    writer.append([storable(record) for record in records])
    data = written.getvalue()
    return data[: len(data) - sample.torn]


def opened(name: str, data: bytes) -> Capture:
    """Open a sample; no path of this machine is in it."""
    capture = open_stream(BytesIO(data), f"{name}.mcpcap")
    capture.keep()  # its head tells what its end has
    return capture


def transcript(name: str, data: bytes) -> bytes:
    """Return the transcript of a sample's capture in Markdown."""
    stream = BytesIO()
    write_markdown(Session(opened(name, data)), stream)
    return stream.getvalue()


def excerpt(name: str, first: int, last: int) -> str:
    """Return the rows from number ``first`` to ``last`` of a sample's transcript as text."""
    lines: list[str] = []

    class Rows(TextTranscript):
        def head(self, label: str, entries: Iterable[Entry]) -> None:
            """Leave out the head."""

        def row(self, row: Row) -> None:
            """Take the rows that are asked for."""
            if first <= row.n <= last:
                super().row(row)

    page = Rows(plain(lines.append), EXCERPT_WIDTH)
    write(Session(opened(name, (HERE / f"{name}.mcpcap").read_bytes())), page)
    return "".join(lines)


def built() -> Iterator[tuple[Path, bytes]]:
    """Give every file with what belongs into it."""
    for sample in SAMPLES:
        data = capture_bytes(sample)
        yield HERE / f"{sample.name}.mcpcap", data
        yield HERE / f"{sample.name}.md", transcript(sample.name, data)


def _lines(data: bytes) -> list[str]:
    return data.decode(errors="backslashreplace").split("\n")


def run(*, check: bool) -> int:
    """Build all samples, or compare; returns the exit status."""
    stale = False
    for path, new in built():
        old = path.read_bytes() if path.exists() else b""
        if old == new:
            continue
        stale = True
        if check:
            diff = difflib.unified_diff(_lines(old), _lines(new), path.name, f"{path.name} (built)", lineterm="")
            print("\n".join(diff))
        else:
            path.write_bytes(new)
            print(f"{path.name}: written")
    if check and stale:
        print("stale: run `make captures`", file=sys.stderr)
        return 1
    return 0


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Build the sample captures and their transcripts.")
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 when something is stale")
    options = parser.parse_args()
    try:
        return run(check=options.check)
    except (DialogueError, OSError) as error:
        print(f"captures/make.py: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
