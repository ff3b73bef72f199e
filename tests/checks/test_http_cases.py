"""Public bug cases about HTTP (tests/cases/cases.json) that a finding has to tell of; each bears its number.

What decoding makes of them stands in tests/decoder/test_http_cases.py; a dialogue for each rule in pages/.
"""

import base64
import json
from pathlib import Path

import pytest

from mcpsniff.checks import INFO
from tests.dialogue import play

CASES = {
    case["id"]: case
    for case in json.loads((Path(__file__).parents[1] / "cases" / "cases.json").read_text(encoding="utf-8"))
}
PING = '{"jsonrpc":"2.0","id":1,"method":"ping"}'
PONG = '{"jsonrpc":"2.0","id":1,"result":{}}'
CALL = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"%s"}}'
NOTICE = '{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}'

CODED = f"""C> POST /mcp
    Content-Encoding: GZip
    Content-Type: application/json
    Content-Length: {len(PING)}
C| {PING.encode()!r}
S> 200 {PONG}
"""

FINDINGS: dict[str, tuple[str, list[str]]] = {
    "B57": (CODED, ["MCP551"]),
    "B61": (
        f'C> POST /mcp {PING}\nS> 200 STREAM\nS| b\'13\\r\\ndata: {{"jsonrpc":"2\\r\\n\'\nS> RESET',
        ["MCP533", "MCP550"],
    ),
    "B64": (
        "@session\n@version\nC9> GET /sse\nS9> 200 STREAM\nS9> EVENT event=endpoint http://mcp.example.com:8000/messages?sid=1",
        ["MCP536"],
    ),
    "B65": (f"C> POST /mcp {PING}\nS> 421 Invalid Host header", ["MCP553"]),
    "B71": (
        f"C> POST /mcp {PING}\nS| {base64.b64decode(CASES['B71']['input']['base64'])!r}",
        ["MCP549"],
    ),
    "B74": (f"C> POST /mcp {PING}\nS> 307\n    Location: http://127.0.0.1:8000/mcp/", ["MCP538"]),
    "B77": (f"C> POST /mcp {NOTICE}\nS> 202\nC> GET /mcp\nS> 405\n    Allow: POST\nC> DELETE /mcp\nS> 404", []),
    "B86": (
        f"C> POST /mcp {CALL % 'A'}\nC2> POST /mcp {CALL % 'B'}\nS2> 200 {PONG}\nS> 200 {PONG}",
        ["MCP401"],
    ),
}


@pytest.mark.parametrize("number", FINDINGS)
def test_the_case_is_told_of(number: str) -> None:
    dialogue, codes = FINDINGS[number]
    played = play(f"@http\n@open 2025-11-25\n{dialogue}")

    assert sorted(one.code for one in played.findings if one.severity != INFO) == codes, str(played)


@pytest.mark.parametrize(
    ("number", "words"), [("B61", "broke off"), ("B64", "bypass"), ("B65", "--host-header"), ("B74", "past mcpsniff")]
)
def test_what_the_finding_says(number: str, words: str) -> None:
    played = play(f"@http\n@open 2025-11-25\n{FINDINGS[number][0]}")
    assert any(words in one.text for one in played.findings), str(played)


def test_B76_what_mcpsniff_answers_is_no_answer_of_the_server() -> None:
    found = play(f"@http\n@open 2025-11-25\nC> POST /mcp {PING}\nM> 502 mcpsniff: no connection").findings

    assert [(one.code, one.blame) for one in found] == [("MCP556", "network")]
