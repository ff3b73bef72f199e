"""`mcpsniff show --filter`, as a process."""

import json
import os
import re
import threading
from pathlib import Path

import pytest

from mcpsniff.capture.records import Record
from tests.capture.capture_files import encoded, save
from tests.cli.running import run
from tests.filter import sample_http
from tests.filter.sample import HEADER, SAMPLE
from tests.sessions import OPENS, records
from tests.transcript.test_servers import BOTH, KEYS, ONE, OTHER
from tests.transcript.test_servers import HEADER as OVER_HTTP

NAME = "weather-20261129T100000.000Z-1.mcpcap"


@pytest.fixture
def capture(tmp_path: Path) -> str:
    return str(save(tmp_path, NAME, SAMPLE, **HEADER))


def numbers(out: str) -> list[int]:
    return [line["n"] for line in map(json.loads, out.splitlines()) if line["type"] == "message"]


def test_text_says_in_head_and_summary_what_is_shown(capture: str) -> None:
    ran = run("show", capture, "--filter", "tool:get_weather", "--no-payload")
    assert (ran.status, ran.err) == (0, "")
    lines = ran.out.splitlines()
    assert "  filter        tool:get_weather  4 of 42 messages shown" in lines
    assert [line.split()[1] for line in lines if "tools/call get_weather" in line] == [
        "#19",
        "#21",
        "#89",
        "#91",
    ]
    assert "  the filter shows 4 of 42 messages in 30.2 s: 2 requests, 2 responses" in lines
    assert "No findings" in lines
    assert "recording ends here" not in ran.out, "the end is not shown, but it is there"


def test_markdown_has_the_same(capture: str) -> None:
    ran = run("show", capture, "--filter", "code:MCP430", "--format", "markdown")
    assert "- **filter:** `code:MCP430` · 3 of 42 messages shown" in ran.out
    assert "the filter shows 3 of 42 messages" in ran.out
    assert ran.out.count("<a id=") == 3
    assert "[#38](#n38)" in ran.out


def test_json_has_the_lines_that_it_has_without_the_filter(capture: str) -> None:
    everything = run("show", capture, "--format", "json", "--payload").out.splitlines()
    ran = run("show", capture, "--format", "json", "--payload", "--filter", "kind:error or kind:stderr")
    assert numbers(ran.out) == [45, 47, 67, 69]
    lines = ran.out.splitlines()
    assert lines == [line for line in everything if line in set(lines)]
    alone = run("show", capture, "--format", "json", "--filter", "kind:error", "--alone")
    assert numbers(alone.out) == [47, 69]


def test_a_capture_that_comes_through_a_pipe(capture: str, tmp_path: Path) -> None:
    data = Path(capture).read_bytes()
    wanted = run("show", capture, "--format", "json", "--filter", "id:7").out
    assert run("show", "-", "--format", "json", "--filter", "id:7", stdin=data).out == wanted
    pipe = tmp_path / "pipe.mcpcap"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(data,))
    writer.start()
    assert run("show", str(pipe), "--format", "json", "--filter", "id:7").out == wanted
    writer.join()


def test_the_whole_session_counts_for_what_is_not_shown(tmp_path: Path) -> None:
    said = records(("c2s", '{"jsonrpc":"2.0","id":1,"method":"ping"}'))
    path = str(save(tmp_path, NAME, [*said, Record(9_000_000, "comment", None, {"text": "later", "by": "me"})]))
    ran = run("show", path, "--filter", "method:ping")
    assert "open #2" in ran.out
    assert "9.0 s" in ran.out, "it has waited until the last event, also where that is not shown"
    assert "the recording ends here without an end of the session" in ran.out


def test_a_finding_never_stands_under_a_row_that_it_is_not_about(tmp_path: Path) -> None:
    data = encoded([*OPENS, *SAMPLE[3:10]], **HEADER) + b"[99999,"
    path = tmp_path / NAME
    path.write_bytes(data)
    ran = run("show", str(path), "--filter", "code:MCP903 or tool:echo", "--no-payload")
    rows = [line for line in ran.out.split("Summary")[0].splitlines() if line.startswith(" ")]
    at = next(place for place, row in enumerate(rows) if "MCP903" in row)
    assert "→ tools/call echo" not in rows[at - 1]
    assert "← tools/call echo" not in rows[at - 1]


def test_nothing_that_matches_is_said_and_no_failure(capture: str) -> None:
    for form in ("text", "markdown", "json"):
        ran = run("show", capture, "--filter", "tool:nothing", "--format", form)
        assert (ran.status, ran.err) == (0, "mcpsniff: the filter matches none of 42 messages\n")
    assert run("show", capture, "--filter", "kind:stderr").err == ""


def test_a_wrong_expression_points_at_the_place(capture: str) -> None:
    ran = run("show", capture, "--filter", "北京 kind:eror")
    assert (ran.status, ran.out) == (2, "")
    first, shown, caret = ran.err.splitlines()
    assert first.startswith("mcpsniff: filter, column 9: eror is none of ")
    assert first.endswith("; did you mean error?")
    assert (shown, caret) == ("  北京 kind:eror", "            ^")
    assert run("show", "/nowhere", "--filter", "(").status == 2, (
        "the expression is read before the capture is looked for"
    )


def test_alone_needs_a_filter(capture: str) -> None:
    ran = run("show", capture, "--alone")
    assert (ran.status, ran.out) == (2, "")
    assert "--filter" in ran.err


def test_the_help_names_the_fields() -> None:
    from mcpsniff.transcript.filter.terms import FIELDS

    out = run("show", "--help").out
    assert "docs/filter.md" in out
    assert [field for field in ("method", "tool", "kind", "state", "latency", "text") if f"{field}:" not in out] == []
    assert set(FIELDS) >= {"method", "tool", "kind", "state", "latency", "text"}


def test_over_http_the_exchanges_are_counted_too(tmp_path: Path) -> None:
    path = str(save(tmp_path, "web.mcpcap", sample_http.SAMPLE, transport="http"))
    everything = run("show", path, "--format", "json").out
    http = [line for line in map(json.loads, everything.splitlines()) if line["type"] == "http"]
    total = len({line["number"] for line in http if line["state"] != "undecoded"})
    ran = run("show", path, "--filter", "kind:http")
    head = next(line for line in ran.out.splitlines() if line.startswith("  filter "))
    assert re.search(rf"  0 of \d+ messages and {total} of {total} HTTP exchanges shown$", head)
    assert re.search(rf"the filter shows 0 of \d+ messages in [\d.]+ m?s: {total} HTTP exchanges\n", ran.out)
    some = run("show", path, "--filter", "status:405", "--format", "markdown").out
    assert re.search(rf" and [1-9] of {total} HTTP exchanges shown\n", some)


def test_servers_are_named_where_none_is_the_one_asked_for(tmp_path: Path) -> None:
    path = str(save(tmp_path, "http.mcpcap", sample_http.SAMPLE, transport="http"))
    ran = run("show", path, "--filter", "server:elsewhere")
    assert "messages; the servers are http://127.0.0.1:8000, by their own names s\n" in ran.err
    for value in ("8000", "s", "S"):
        assert run("show", path, "--filter", f"server:{value}").err == ""


def test_how_many_conversations_there_are_where_none_is_the_one_asked_for(capture: str, tmp_path: Path) -> None:
    two = tmp_path / "two.mcpcap"
    save(tmp_path, two.name, BOTH[:-6], **OVER_HTTP)
    none = "mcpsniff: the filter matches none of"
    for wrong in ("0", "3"):
        assert run("show", str(two), "--filter", f"conversation:{wrong}").err == (
            f"{none} 4 messages; there are 2 conversations\n"
        )
    assert run("show", capture, "--filter", "conversation:2").err == f"{none} 42 messages; there is 1 conversation\n"


@pytest.mark.parametrize("form", ["text", "markdown"])
def test_who_asked_for_one_conversation_is_not_told_how(form: str, tmp_path: Path) -> None:
    path = str(save(tmp_path, "two.mcpcap", BOTH, **OVER_HTTP))
    hint = "shows only what is marked"
    assert hint in run("show", path, "--format", form).out
    assert hint in run("show", path, "--format", form, "--filter", "kind:http").out
    assert hint not in run("show", path, "--format", form, "--filter", "conversation:1").out


def test_servers_are_counted_as_the_filter_shows_them(tmp_path: Path) -> None:
    path = str(save(tmp_path, "two.mcpcap", BOTH, **OVER_HTTP))

    def of(form: str, chosen: str) -> str:
        whole = " ".join(run("show", path, "--format", form, "--filter", chosen).out.split())
        return whole.split("Summary", 1)[1]

    counted = f"servers: {ONE} (2 exchanges), {KEYS} (1 exchange), {OTHER} (1 exchange)"
    assert counted in " ".join(run("show", path).out.split())
    for form in ("text", "markdown", "html"):
        shown = of(form, "conversation:1")
        assert "HTTP: 1 exchange on 1 connection" in shown
        assert "servers: " not in shown, "only one is shown"
        shown = of(form, "conversation:1 or conversation:2")
        assert f"servers: {ONE} (1 exchange), {OTHER} (1 exchange)" in shown
        assert KEYS not in shown
