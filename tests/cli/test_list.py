"""`mcpsniff list`: the table, its width, and what is remembered from one call to the next."""

import fcntl
import json
import re
import stat
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from mcpsniff.capture.catalog import list_captures
from mcpsniff.cli import digests
from mcpsniff.cli.list_ import age
from mcpsniff.cli.table import Column, table
from mcpsniff.transcript.digest import Digest
from mcpsniff.transcript.layout import cells, length
from tests.capture.capture_files import encoded, save
from tests.captures.samples import FOLDER, NAMES
from tests.cli.listing import saved
from tests.cli.running import on_terminal, run
from tests.edited import Session
from tests.filter.sample_http import DIALOGUE
from tests.sessions import records
from tests.transcript.http_sessions import records as records_over_http
from tests.transcript.test_servers import BOTH, HEADER, ONE, OTHER, SINGLE, said

EXPECTED = {
    "weather": (19, 1, None, ("zhushou", "weather")),
    "noise": (16, 1, "MCP101", ("editor", "notes")),
    "hostile": (24, 1, "MCP101", ("client", "hostile")),
    "torn": (8, 0, "MCP903", ("shell", "backup")),
    "modern": (15, 1, None, ("desk", "rail")),
    "faults": (24, 0, "MCP213", ("agent", "builder")),
    "weather-sse": (11, 2, None, ("zhushou", "weather")),
    "notes": (11, 0, None, ("desk", "notes")),
    "rail-http": (14, 1, None, ("desk", "rail")),
    "edited": (11, 2, None, ("desk", "shop")),
}


def bare(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def listed(folder: Path, *words: str, **env: str) -> list[dict[str, Any]]:
    ran = run("list", "--json", "--dir", str(folder), *words, env=env)
    assert (ran.status, ran.err) == (0, "")
    return [json.loads(line) for line in ran.out.splitlines()]


def test_the_samples_as_json() -> None:
    found = {entry["name"]: entry for entry in listed(FOLDER)}
    assert list(found) == NAMES
    for name, (messages, errors, worst, peers) in EXPECTED.items():
        entry = found[name]
        assert (entry["messages"], entry["errors"]) == (messages, errors), name
        assert (entry["worst"] or {"code": None})["code"] == worst
        assert (entry["client"]["name"], entry["server"]["name"]) == peers
        transport = "http" if name in ("weather-sse", "notes", "rail-http") else "stdio"
        assert (entry["running"], entry["problem"], entry["transport"]) == (False, None, transport)
    assert found["faults"]["findings"] == {"error": 6, "warning": 6}
    assert found["faults"]["unanswered"] == 4
    assert found["modern"]["revision"] == "2026-07-28"
    assert found["weather"]["duration_us"] == 5_911_000
    assert found["weather"]["worst"] is None
    assert (found["weather"]["edits"], found["weather"]["edited_by"]) == (0, [])
    by = ["--block tool:delete_order", "faults", "--set-argument search.limit", "break"]
    assert (found["edited"]["edits"], found["edited"]["edited_by"]) == (7, by)
    local = datetime.fromisoformat(found["weather"]["started_local"])
    assert local == datetime.fromisoformat(found["weather"]["started"])


def test_a_capture_of_http_has_its_upstream_and_says_how_many_talked(tmp_path: Path) -> None:
    ends = {"listen": "http://127.0.0.1:9000/mcp", "upstream": "http://127.0.0.1:8000/mcp"}
    saved(tmp_path, "x", records=records_over_http(DIALOGUE), transport="http", **ends)
    [entry] = listed(tmp_path)
    assert (entry["transport"], entry["listen"], entry["upstream"]) == ("http", ends["listen"], ends["upstream"])
    assert (entry["conversations"], entry["messages"], entry["errors"], entry["unanswered"]) == (2, 17, 3, 0)
    assert (entry["client"], entry["revision"]) == ({"name": "c", "version": "1"}, "2024-11-05")
    shown = run("list", "--long", "--dir", str(tmp_path)).out
    assert "c 1 → s 1 and 1 more  http://127.0.0.1:8000/mcp  http  " in shown


def test_no_length_is_claimed_where_nothing_was_recorded(tmp_path: Path) -> None:
    """A relay that nobody used: its capture does not tell how long it ran."""
    path = saved(tmp_path, "x", days=0.1, records=[], transport="http")
    (tmp_path / "old-20261129T100000.000Z-1.mcpcap").touch()
    told = run("list", "--dir", str(tmp_path)).out
    assert re.search(r"^x +2 h ago +0 +0  nothing recorded  ", told, re.MULTILINE)
    assert re.search(r"^old  .*\n    nothing was recorded: the file is empty$", told, re.MULTILINE)
    assert "unreadable" not in told
    entry, old = listed(tmp_path)
    assert (entry["duration_us"], entry["empty"]) == (0, True)
    assert old["empty"] is None
    assert "nothing was recorded" in old["problem"]
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        told = run("list", "--dir", str(tmp_path)).out
        assert re.search(r"^x +running +2 h 24 min +0 +0  nothing recorded yet  ", told, re.MULTILINE)
        told = run("show", "x", "--dir", str(tmp_path)).out
        assert "the session is still running; nothing was recorded yet\n" in told
    assert "\nnothing was recorded\n" in run("show", "x", "--dir", str(tmp_path)).out


def test_local_times_are_of_this_place() -> None:
    [weather, *_] = listed(FOLDER, TZ="Asia/Shanghai")
    assert (weather["started"], weather["started_local"]) == (
        "2026-11-29T10:00:00.000000Z",
        "2026-11-29 18:00:00+08:00",
    )
    assert "2026-11-29 18:00:00" in run("list", "--dir", str(FOLDER), env={"TZ": "Asia/Shanghai"}).out


def test_a_pipe_gets_every_column() -> None:
    title, *lines = run("list", "--dir", str(FOLDER)).out.splitlines()[1:]
    columns = "label when length messages failed worst finding edited by peers spoken to transport started size capture"
    assert " ".join(title.split()) == columns
    assert len(lines) == len(NAMES)
    assert "zhushou 3.1.0 → weather 1.4.0" in lines[0]
    assert "MCP213 error" in lines[NAMES.index("faults")]
    starts = [re.split(r"  (?=(?:stdio|http) +2026-)", line)[0] for line in lines]
    assert len({cells(start) for start in starts}) == 1


@pytest.mark.parametrize("columns", [1, 20, 33, 40, 60, 80, 100, 160])
def test_a_terminal_is_never_too_narrow(tmp_path: Path, columns: int) -> None:
    saved(tmp_path, "天气服务器天气服务器天气服务器", days=3)
    saved(tmp_path, "time", days=0.01)
    (tmp_path / "bad.mcpcap").write_bytes(b"nonsense")
    ran = on_terminal("list", "--dir", str(tmp_path), columns=columns)
    assert ran.status == 0
    lines = bare(ran.out).splitlines()
    assert max(map(cells, lines)) <= max(columns, 20)
    assert any("14 min ago" in line for line in lines)
    assert ("MCP101" in ran.out) == (columns >= 40)
    assert ("c → s" in ran.out) == (columns in {60, 80, 100})
    assert ("c 1 → s 2" in ran.out) == (columns == 160)
    assert re.search(r"unreadable:", bare(ran.out))


@pytest.mark.parametrize("columns", [20, 40, 60, 80, 160])
def test_an_edited_one_says_who_edits(tmp_path: Path, columns: int) -> None:
    said = Session().ask(1).change(None, by="--block tool:\x1b[31mx").ask(2).change(None, by="mine.py")
    saved(tmp_path, "time", days=3)
    saved(tmp_path, "shop", days=3, records=said.end().records)
    ran = on_terminal("list", "--dir", str(tmp_path), columns=columns)
    lines = bare(ran.out).splitlines()
    assert max(map(cells, lines)) <= columns
    assert ("edited by" in ran.out) == (columns >= 60)
    assert ("--block" in ran.out) == (columns >= 60)
    assert "\x1b[31mx" not in ran.out
    head = run("show", "shop", "--dir", str(tmp_path), "--filter", "id:1").out
    assert "  edited by     --block tool:\\x1b[31mx, mine.py  what left is shown beside what came\n" in head
    assert "edited by" not in run("show", "time", "--dir", str(tmp_path)).out


def test_long_has_all_columns_on_any_terminal(tmp_path: Path) -> None:
    path = saved(tmp_path, "time", days=400)
    ran = on_terminal("list", "--long", "--dir", str(tmp_path), columns=40)
    assert path.name.removesuffix(".mcpcap") in ran.out
    assert "400 days" not in ran.out
    assert re.search(r"time +\d{4}-\d\d-\d\d  ", bare(ran.out)), "what is long ago has a date"


def test_a_running_one_is_said_to_run(tmp_path: Path) -> None:
    path = saved(tmp_path, "time", days=0.1, records=records(("c2s", '{"jsonrpc":"2.0","id":1,"method":"ping"}')))
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert re.search(r"^time +running +2 h 24 min ", run("list", "--dir", str(tmp_path)).out, re.MULTILINE)
        assert listed(tmp_path)[0]["running"] is True
        cache = Path(digests.cache_path(str(tmp_path)))
        assert not cache.exists(), "it will be another one the next time"
    assert listed(tmp_path)[0]["running"] is False


def test_hostile_names_do_nothing(tmp_path: Path) -> None:
    said = records(
        (
            "c2s",
            '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},'
            '"clientInfo":{"name":"\\u001b[2J\\u202eevil","version":"' + "9" * 5000 + '"}}}',
        ),
    )
    saved(tmp_path, "x", records=said, label="\x1b]0;owned\x07\n", argv=["\x1b[31m"])
    for ran in (run("list", "--dir", str(tmp_path)), run("list", "--json", "--dir", str(tmp_path))):
        assert ran.status == 0
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", ran.out)
    table_of = run("list", "--dir", str(tmp_path)).out
    assert "\u202e" not in table_of
    assert len(table_of.splitlines()) == 3
    [entry] = listed(tmp_path)
    assert entry["label"] == "\x1b]0;owned\x07\n"
    assert len(entry["client"]["version"]) == 200


def cached(folder: Path) -> Path:
    return Path(digests.cache_path(str(folder)))


def test_what_was_read_is_remembered_privately(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved(tmp_path, "time", days=1)
    folder = str(tmp_path)
    [first] = digests.look(folder, list_captures(folder))
    assert first.digest is not None
    assert stat.S_IMODE(cached(tmp_path).stat().st_mode) == 0o600
    monkeypatch.setattr(digests, "open_capture", lambda _path: pytest.fail("it is decoded again"))
    [again] = digests.look(folder, list_captures(folder))
    assert again.digest == first.digest
    monkeypatch.undo()
    with path.open("ab") as file:
        file.write(b'[99000,"chunk",0,"{\\"jsonrpc\\":\\"2.0\\",\\"method\\":\\"notifications/x\\"}\\n"]\n')
    [changed] = digests.look(folder, list_captures(folder))
    assert changed.digest is not None
    assert changed.digest.messages == first.digest.messages + 1
    monkeypatch.setattr(digests, "__version__", "99")
    monkeypatch.setattr(digests, "_decode", lambda one: setattr(one, "problem", "decoded"))
    assert digests.look(folder, list_captures(folder))[0].problem == "decoded", "another version has other checks"


@pytest.mark.parametrize(
    "damage",
    [b"", b"{", b"[]", b"null", b'{"x":1}', b"\xff\x00", b"[" * 100_000, b"VALUE:1", b"VALUE:[1,2,3,4,{},0,0,0,0,1]",
     b'VALUE:[1,2,3,4,{"error":"x"},null,null,null,null,1]', b'VALUE:[-1,2,3,4,{},null,null,null,null,1]'],
)  # fmt: skip
def test_a_damaged_cache_costs_time_only(tmp_path: Path, damage: bytes) -> None:
    saved(tmp_path, "time", days=1)
    before = listed(tmp_path)
    cache = cached(tmp_path)
    if damage.startswith(b"VALUE:"):
        value = json.loads(cache.read_bytes())
        for key in value:
            value[key][1] = json.loads(damage[6:])
        cache.write_text(json.dumps(value), encoding="utf-8")
    else:
        cache.write_bytes(damage)
    assert listed(tmp_path) == before
    assert len(json.loads(cache.read_bytes())) == 1, "and is made anew"


def test_a_cache_that_cannot_be_written_is_nobodys_trouble(tmp_path: Path) -> None:
    saved(tmp_path / "captures", "time", days=1)
    (tmp_path / "file").write_text("", encoding="utf-8")
    env = {"XDG_CACHE_HOME": str(tmp_path / "file"), "HOME": str(tmp_path / "file")}
    assert listed(tmp_path / "captures", **env) == listed(tmp_path / "captures")


def test_only_so_much_is_read_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(4):
        saved(tmp_path, f"s{number}", days=4 - number, number=number)
    folder = str(tmp_path)
    entries = list_captures(folder)
    monkeypatch.setattr(digests, "AT_ONCE", 2 * entries[0].size + 10)
    assert [one.is_unread for one in digests.look(folder, entries)] == [True, True, False, False]
    assert [one.is_unread for one in digests.look(folder, entries)] == [False] * 4, "each call reads more"
    cached(tmp_path).unlink()
    assert not any(one.is_unread for one in digests.look(folder, entries, everything=True))


def test_what_is_not_read_yet_is_said(tmp_path: Path) -> None:
    data = encoded(records(*[("s2c", "x" * 1000)] * 10))
    (tmp_path / "big.mcpcap").write_bytes(data + b'[99000,"unknown",0,"' + b"y" * digests.AT_ONCE + b'"]\n')
    saved(tmp_path, "small", days=1)
    ran = run("list", "--dir", str(tmp_path))
    assert "not read yet" in ran.out
    assert ran.out.splitlines()[-1] == "1 capture not read yet (more than 34 MB): `mcpsniff list --all` reads all"
    assert [entry["messages"] is None for entry in listed(tmp_path)].count(True) == 1
    assert "not read yet" not in run("list", "--all", "--dir", str(tmp_path)).out


def test_a_capture_that_vanishes_meanwhile(tmp_path: Path) -> None:
    path = saved(tmp_path, "time")
    entries = list_captures(str(tmp_path))
    path.unlink()
    [one] = digests.look(str(tmp_path), entries)
    assert (one.digest, one.running) == (None, False)
    assert "no such capture" in (one.problem or "")


def test_parts_are_one_capture(tmp_path: Path) -> None:
    save(tmp_path, "a.mcpcap", records(("c2s", '{"jsonrpc":"2.0","id":1,"method":"ping"}')))
    save(tmp_path, "a.0002.mcpcap", records(("s2c", '{"jsonrpc":"2.0","id":1,"result":{}}'))[3:], part=2)
    [entry] = listed(tmp_path)
    assert (entry["parts"], entry["messages"], entry["unanswered"]) == (2, 2, 0)


def test_a_digest_comes_back_as_it_was() -> None:
    whole = Digest(1, 2, 3, 4, {"error": 1}, ("MCP101", "x", "error"), ("c", ""), None, None)
    assert Digest.read(json.loads(json.dumps(whole))) == whole
    for broken in (
        *(None, 1, [], list(whole)[:-1], [*whole[:5], ["a"], *whole[6:]], [True, *whole[1:]], [*whole[:8], 1]),
        [*whole[:-1], 0],
    ):
        assert Digest.read(broken) is None


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "just now"), (-3, "just now"), (-60, ""), (12, "12 s ago"), (59.9, "59 s ago"), (60, "1 min ago"),
     (3599, "59 min ago"), (7200, "2 h ago"), (86400, "1 day ago"), (1e6, "11 days ago")],
)  # fmt: skip
def test_ages(seconds: float, words: str) -> None:
    assert age(seconds) == words


def test_a_table_leaves_out_what_matters_least() -> None:
    columns = (Column("a", 3, least=4), Column("bb", 1, right=True), Column("c", 2), Column("d", 9, is_extra=True))
    rows = [[("", "long name"), ("", "1"), ("", "xyz"), ("", "e")]]

    def shown(width: int | None) -> list[str]:
        lines = list(table(columns, rows, width))
        assert all(length(line) <= (width or 1000) for line in lines)
        return ["".join(text for _, text in line).rstrip() for line in lines]

    assert shown(None) == shown(40) == ["a          bb  c    d", "long name   1  xyz  e"]
    assert shown(18) == ["a          bb  c", "long name   1  xyz"]
    assert shown(16) == ["a        bb  c", "long na…  1  xyz"] or shown(16)[1].startswith("long n…")
    assert shown(9) == ["a     c", "lon…  xyz"]
    assert shown(3) == ["a", "lo…"]
    assert list(table(columns, [], None))


def test_the_servers_of_what_was_said_over_http(tmp_path: Path) -> None:
    """Without them captures of one client would look all alike."""
    saved(tmp_path, "one", days=3, records=SINGLE, **HEADER)
    saved(tmp_path, "both", days=2, records=BOTH, **HEADER)
    saved(tmp_path, "piped", days=1)
    ping = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    saved(tmp_path, "nameless", records=said(0, ONE, "POST /mcp", ping, b"{}"), **HEADER)
    assert [entry["origins"] for entry in listed(tmp_path)] == [[ONE], [ONE, OTHER], [], [ONE]]
    lines = run("list", "--dir", str(tmp_path)).out.splitlines()
    assert re.search(rf"  {ONE} +proxy  ", lines[2])
    assert re.search(rf"  2 servers: {ONE}, {OTHER} +proxy  ", lines[3])
    ran = on_terminal("list", "--dir", str(tmp_path), columns=110)
    assert ONE in bare(ran.out)
    ran = on_terminal("list", "--dir", str(tmp_path), columns=80)
    assert f"? → {ONE[:10]}" in bare(ran.out), "where nobody gave a name, the address tells captures apart"


def test_the_transport_is_the_one_that_show_has(tmp_path: Path) -> None:
    saved(tmp_path, "ran", records=SINGLE, **HEADER)
    saved(tmp_path, "read", records=SINGLE, **HEADER, imported="/home/me/flows")
    ran, read = run("list", "--dir", str(tmp_path)).out.splitlines()[2:]
    for row, word in ((ran, "proxy"), (read, "http")):
        assert re.search(rf"  {ONE} +{word}  ", row)
        shown = run("show", row.split()[0], "--dir", str(tmp_path)).out
        assert f"  transport     {word}  Streamable HTTP\n" in shown
    assert {entry["transport"] for entry in listed(tmp_path)} == {"forward"}, "to programs it is as in the header"


def test_there_is_no_such_column_for_pipes_alone(tmp_path: Path) -> None:
    saved(tmp_path, "piped")
    assert "spoken to" not in run("list", "--dir", str(tmp_path)).out
