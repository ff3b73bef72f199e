"""What has the name of a secret but is none, what lies below such a name, and what must stay JSON or HTTP."""

import json
from base64 import b64decode, encodebytes
from pathlib import Path
from typing import Any

import pytest

from mcpsniff.capture.reader import open_capture
from mcpsniff.cli.main import run
from tests.capture.capture_files import encoded, save
from tests.redact.planted import REQUEST, RESULT, answer, bodies, coded, outline, pipes, post, redacted, wire
from tests.redact.test_rules import params

TOOL = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "description": "a city", "minLength": 3, "default": "Berlin-Mitte"},
        "token": {"type": "string", "default": "abcdefgh1", "enum": ["abcdefgh1"]},
    },
    "required": ["city"],
}


@pytest.mark.parametrize("asked", [{"keys": ["city"]}, {"paths": ["params.**.city"]}])
def test_a_schema_keeps_what_it_says_of_a_property(asked: dict[str, list[str]], tmp_path: Path) -> None:
    given = {"inputSchema": TOOL, "city": "Berlin-Mitte", "feature": {"properties": {"city": "Kreuzberg"}}}
    got = params(tmp_path, given, **asked)
    told = TOOL | {"properties": TOOL["properties"] | {"city": TOOL["properties"]["city"] | {"default": got["city"]}}}  # type: ignore[index,operator]
    assert got == {"inputSchema": told, "city": got["city"], "feature": got["feature"]}
    assert "Berlin" not in got["city"]
    assert got["feature"]["properties"]["city"].startswith("redacted-city-")


def test_below_a_telling_name(tmp_path: Path) -> None:
    given: dict[str, Any] = {
        "password": 12345678,
        "headers": {"X-Api-Key": ["Qz21xW8vLm3"], "Accept": ["x"]},
        "secret": {"value": "Kd81mQ", "list": [{"a": 4711.25}], "on": True, "n": 12},
        "pass": 3,
        "text": json.dumps({"token": {"is": "Zu81mQ77"}}),
    }
    got = params(tmp_path, given)
    assert got == {
        "password": 9000000001,
        "headers": {"X-Api-Key": ["redacted-x-api-key-1"], "Accept": ["x"]},
        "secret": {"value": "redacted-secret-1", "list": [{"a": 9000000002}], "on": True, "n": 12},
        "pass": 3,
        "text": '{"token": {"is": "redacted-token-1"}}',
    }


@pytest.mark.parametrize("value", ['"hunter22x"', 'hunter22x"', "hunter22x\\", '\\"hunter22x\\"', " hunter22x\n", "'"])
def test_a_value_with_quotes_at_its_ends_leaves_json(value: str, tmp_path: Path) -> None:
    given = {"password": value, "note": "hunter22x", "more": json.dumps({"note": "hunter22x"}), "n": [1, "x"]}
    got = params(tmp_path, given)
    if value == "'":
        assert got == given
        return
    assert "hunter22x" not in json.dumps(got)
    assert got["note"] == "redacted-password-1"
    assert json.loads(got["more"]) == {"note": "redacted-password-1"}
    assert params(tmp_path, got) == got


def test_a_number_said_as_text_leaves_numbers(tmp_path: Path) -> None:
    got = params(tmp_path, {"password": "-1234.5678", "n": [-1234.5678, 12345678]})
    assert got == {"password": "9000000001", "n": [9000000001, 12345678]}


@pytest.mark.parametrize("path", ["/token", "/basic", "/oauth?token="])
def test_a_path_that_ends_in_the_word_of_a_scheme(path: str, tmp_path: Path) -> None:
    body = b"grant_type=x&client_secret=Zebra-Secret-77"
    head = f"POST {path} HTTP/1.1\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 42\r\n\r\n"
    got = redacted(tmp_path, wire((0, head.encode() + body), (1, answer(b"{}")), (0, post(b"{}")), (1, answer(b"{}"))))
    assert outline(got.path) == outline(got.source)
    assert got.bytes_of(0).count(b" HTTP/1.1\r\n") == 2
    assert got.bytes_of(1).count(b"HTTP/1.1 200 OK\r\n") == 2
    records = bodies([b"{}"], [b"{}"])
    records[0].body["meta"]["start"] = f"POST {path} HTTP/1.1"
    assert redacted(tmp_path, records).records[0].body["meta"]["start"] == f"POST {path} HTTP/1.1"


KEY = "MIIEpAIBAAKCAQEA0Z3VS5JJcds3xfn/ygWyF8PbnGy0AHB7MaXbWgKq\n" * 3 + "AbCd=="
BEGIN, END = "-----BEGIN RSA PRIVATE KEY-----\n", "\n-----END RSA PRIVATE KEY-----"


@pytest.mark.parametrize(
    "key",
    [
        f"{BEGIN}Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0123ABCD\n\n{KEY}{END}",
        f"{BEGIN}{KEY}",
        f"{BEGIN}Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0123ABCD\n\n{KEY}",
        f"-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: GnuPG v2-1\n\n{KEY}\n-----END PGP PRIVATE KEY BLOCK-----",
        (BEGIN + KEY + END).replace("\n", "\r\n"),
    ],
)
def test_private_keys(key: str, tmp_path: Path) -> None:
    got = params(tmp_path, {"key": f"a {key}.", "lines": key.splitlines(), "next": "x"})
    assert "MIIE" not in json.dumps(got)
    assert len(got["lines"]) == len(key.splitlines())
    assert got["key"] in ("a redacted-private-key-1.", "a redacted-private-key-1")
    assert got["next"] == "x"
    source = pipes((2, f"at: {key}\n".encode()))
    assert b"MIIE" not in redacted(tmp_path, source).bytes_of(2)


def test_a_private_key_on_stdout_line_by_line(tmp_path: Path) -> None:
    line = (RESULT % (1, "y")).encode()
    got = redacted(tmp_path, pipes((1, f"{BEGIN}{KEY}{END}\nready\n".encode() + line + b"\n")))
    assert b"MIIE" not in got.bytes_of(1)
    assert b"AbCd" not in got.bytes_of(1)
    assert got.bytes_of(1).endswith(b"\nready\n" + line + b"\n")
    assert outline(got.path) == outline(got.source)


def test_a_private_key_over_the_border_of_two_blocks_of_a_log(tmp_path: Path) -> None:
    log = ("x" * 63 + "\n") * 1023 + BEGIN + KEY + END + "\nready\n"
    got = redacted(tmp_path, pipes((2, log[:65536].encode()), (2, log[65536:].encode())))
    assert b"MIIE" not in got.bytes_of(2)
    assert got.bytes_of(2).endswith(b"redacted-private-key-1" + b"\n" * 6 + b"ready\n")
    assert outline(got.path) == outline(got.source)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\n    "])
@pytest.mark.parametrize("ahead", range(3))
def test_base64_in_lines(ahead: int, end: str, tmp_path: Path) -> None:
    said = "# settings of service, do not share"[ahead:] + "\nDB_PASSWORD=Tr0ub4dor-horse-99\nDB_HOST=localhost\n" * 2
    lines = end.join(encodebytes(said.encode()).decode().splitlines())
    got = redacted(
        tmp_path,
        pipes(
            (0, (REQUEST % (1, "Tr0ub4dor-horse-99")).encode() + b"\n"),
            (1, (RESULT % (1, json.dumps(lines)[1:-1])).encode() + b"\n"),
            (2, b"file: " + lines.encode() + b"\n"),
        ),
        values=["Tr0ub4dor-horse-99"],
    )
    assert outline(got.path) == outline(got.source)
    text = json.loads(got.bytes_of(1))["result"]["content"][0]["text"]
    for made in (text, got.bytes_of(2).decode().removeprefix("file: ").rstrip("\n")):
        assert b64decode(made).decode() == said.replace("Tr0ub4dor-horse-99", "redacted-value-1")
        assert {len(line.strip()) for line in made.split("\n")[:-1]} == {76}


def test_base64_over_the_data_lines_of_an_event(tmp_path: Path) -> None:
    said = b"x" * 45 + b"Tr0ub4dor-horse-99" + b"y" * 80
    event = b"data: " + encodebytes(said).strip().replace(b"\n", b"\ndata: ") + b"\n\n"
    records = wire((0, post(b"{}")), (1, answer(event, kind="text/event-stream")))
    got = redacted(tmp_path, records, values=["Tr0ub4dor-horse-99"])
    made = got.bytes_of(1).partition(b"\r\n\r\n")[2]
    assert b64decode(made.replace(b"data: ", b"")) == said.replace(b"Tr0ub4dor-horse-99", b"redacted-value-1")
    assert made.count(b"data: ") == event.count(b"data: ")


def test_the_name_of_a_home_folder_is_removed_elsewhere_too(tmp_path: Path) -> None:
    given = {
        "cwd": "/home/alexandra/x",
        "user": "alexandra",
        "project": "-home-alexandra-x",
        "win": "C:\\Users\\Dave Smith\\x",
        "short": ["/home/bob", "-home-bob-x", "bob"],
    }
    assert params(tmp_path, given) == {
        "cwd": "/home/redacted-home-1/x",
        "user": "redacted-home-1",
        "project": "-home-redacted-home-1-x",
        "win": "C:\\Users\\redacted-home-3\\x",
        "short": ["/home/redacted-home-2", "-home-redacted-home-2-x", "bob"],
    }


@pytest.mark.parametrize("mail", ["jürgen@bücher.example.de", "иван@почта.рф", "用户@例子.公司", "a@b.xn--p1ai"])
def test_addresses_of_e_mail_beyond_ascii(mail: str, tmp_path: Path) -> None:
    got = params(tmp_path, {"a": f"to {mail}, please", "b": "请联系bob@example.com。谢谢"})
    assert got["a"] == "to redacted-email-1@example.invalid, please"
    assert "bob" not in got["b"]
    assert got["b"].endswith("。谢谢")


def test_redacted_once_more_the_counts_are_those_of_both(tmp_path: Path) -> None:
    once = redacted(tmp_path, pipes((2, b"a bob@example.com bob@example.com Kreuzberg\n")))
    (tmp_path / "twice").mkdir()
    told = once.capture.header.redacted
    twice = redacted(tmp_path / "twice", once.records, {"redacted": told}, values=["Kreuzberg"])
    assert twice.capture.header.redacted == {
        "by": told and told["by"],
        "values": 2,
        "places": 3,
        "kinds": {"email": 1, "value": 1},
    }
    odd = {"values": "x", "places": -5, "kinds": {"email": [], "<b>": 5}}
    thrice = redacted(tmp_path / "twice", once.records, {"redacted": odd}, values=["Kreuzberg"])
    assert thrice.capture.header.redacted == {**(told or {}), "values": 1, "places": 1, "kinds": {"value": 1}}


def test_damage_is_told_by_what_was_made_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = pipes((0, (REQUEST % (1, "x")).encode() + b"\n"), (1, (RESULT % (1, "y")).encode() + b"\n"))
    source, out, more = tmp_path / "a.mcpcap", tmp_path / "out.mcpcap", tmp_path / "more.mcpcap"
    source.write_bytes(encoded(said, transport="stdio") + b'[900003,"comment",null,{"text":"to\nno line\n')
    for path, made in ((source, out), (out, more)):
        assert run(["redact", str(path), "-o", str(made)]) == 0
        assert "2 places of the capture could not be read: what was there is not in" in capsys.readouterr().err
        assert run(["show", str(made)]) == 0
        shown = capsys.readouterr()
        assert "MCP903" in shown.out
        assert "2 places of the capture that was redacted could not be read" in shown.out
    gaps = [one.body for one in open_capture(str(out)).records() if one.kind == "gap"]
    assert gaps == [{"bytes": 0, "why": "damage"}]


def test_what_follows_a_coded_body_is_told(tmp_path: Path) -> None:
    body = coded(b'{"x":"bob@example.com"}', "gzip") + b"more of it"
    got = redacted(tmp_path, wire((0, post(b"{}")), (1, answer(body, "Content-Encoding: gzip"))))
    assert outline(got.path) == outline(got.source)
    assert any("MCP551" in line for line in outline(got.path))
    assert b"more of it" not in got.raw


def test_a_rule_that_matches_nothing_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = (REQUEST % (1, "Anna Huber")).encode() + b"\n"
    source = save(tmp_path, "a.mcpcap", pipes((0, said)), transport="stdio")
    rules = ["--key=no\x1b", "--key=x", "--path=params.no", "--path=params.name", "--pattern=zz+", "--pattern=An+a"]
    values = ["--value=Anna Hubr", "--value=Anna Huber"]
    assert run(["redact", str(source), "-o", str(tmp_path / "out"), "--quiet", *rules, *values]) == 0
    said_so = capsys.readouterr().err
    assert said_so.splitlines() == [
        "mcpsniff: --key no\\x1b matched nothing",
        "mcpsniff: --path params.no matched nothing",
        "mcpsniff: --value 1 matched nothing",
        "mcpsniff: --pattern zz+ matched nothing",
    ]
    assert run(["redact", str(source), "-o", str(tmp_path / "out"), "--value=Anna Hubr"]) == 0
    assert capsys.readouterr().err.endswith("mcpsniff: --value matched nothing\n")
