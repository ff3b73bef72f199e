"""Nothing that was captured runs, loads, moves or hides anything on the page (B137, B140, B151)."""

import json
import re
from base64 import b64encode
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpsniff.capture.records import Record
from tests.html.conftest import Opened
from tests.html.pages import Elements, html
from tests.sessions import OPENS, line
from tests.transcript.http_sessions import hostile

SCRIPT = "</script></style></title></pre><script>document.title='pwned';alert(1)</script>"
IMAGE = "\"'><img src=http://x.test/p onerror=alert(2)><svg onload=alert(3)><a href='javascript:alert(4)'>go</a>"
COMMENT = "<!--<script>--><![CDATA[ &lt;b&gt; &#60;i&#62; {{7*7}} </textarea></noscript><base href=//x.test>"
TERMINAL = "\x1b]52;c;ZXZpbA==\x07\x1b[2J\x9b31m\u202eevil\u2066\u200b\x00\x7f"
EVIL = SCRIPT + IMAGE + COMMENT + TERMINAL
SHOWN = SCRIPT + IMAGE + COMMENT + r"\x1b]52;c;ZXZpbA==\x07\x1b[2J\x9b31m\u202eevil\u2066\u200b\x00\x7f"

HEADER = {
    "transport": "stdio",
    "label": f"label {EVIL}",
    "argv": ["touch", f"pwned {EVIL}", "http://127.0.0.1:1/"],
    "cwd": f"/tmp/{EVIL}",
}


def _call(number: int, params: object) -> tuple[int, bytes]:
    return 0, line({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})


def _text(number: int, text: str) -> tuple[int, bytes]:
    return 1, line({"jsonrpc": "2.0", "id": number, "result": {"content": [{"type": "text", "text": text}]}})


def _said() -> list[Record]:
    peer = {"name": EVIL, "version": EVIL, "title": EVIL}
    capabilities = {EVIL: {EVIL: True}}
    opening = {"protocolVersion": EVIL, "capabilities": capabilities, "clientInfo": peer}
    answer = {"protocolVersion": EVIL, "capabilities": capabilities, "serverInfo": peer, "instructions": EVIL}
    messages: list[tuple[int, bytes]] = [
        (0, line({"jsonrpc": "2.0", "id": EVIL, "method": "initialize", "params": opening})),
        (1, line({"jsonrpc": "2.0", "id": EVIL, "result": answer})),
        (0, line({"jsonrpc": "2.0", "method": "notifications/initialized"})),
        _call(1, {"name": EVIL, "arguments": {EVIL: EVIL}}),
        (1, line({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": EVIL, "data": EVIL}})),
        (1, line({"jsonrpc": "2.0", "id": 1, "error": {"code": -1, "message": EVIL, "data": EVIL}})),
        (0, line({"jsonrpc": "2.0", "id": 2, "method": EVIL, "params": {"x": EVIL}})),
        _call(3, {"name": "text"}),
        _text(3, json.dumps({EVIL: [EVIL]})),
        _text(3, json.dumps([EVIL], ensure_ascii=False)),
        (1, f'{{"jsonrpc":"2.0","id":"{TERMINAL}</script>","result":{{"{SCRIPT}":"{TERMINAL}"}}}}\n'.encode()),
        (1, EVIL.encode() + b" noise \xff\xfe\n"),
        (1, b"{" + EVIL.encode() + b"\n"),
        (2, EVIL.encode() + b"\n"),
        (2, (EVIL * 8).encode() + b"\n"),
    ]
    chunks = [Record(number * 1000, "chunk", channel, data) for number, (channel, data) in enumerate(messages, 1)]
    end = [
        Record(90_000, "comment", None, {"text": EVIL, "by": EVIL}),
        Record(91_000, "gap", 1, {"bytes": 3, "why": EVIL}),
        Record(92_000, "mask", 1, {"start": 0, "length": 3, "what": EVIL, "fp": EVIL}),
        Record(93_000, "rewrite", 1, {"start": 0, "length": 3, "data": EVIL, "by": EVIL}),
        Record(94_000, "close", 0, {"how": EVIL, "error": EVIL}),
        Record(95_000, "close", 1, {"how": "killed", "signal": 9, "sent": [EVIL], "by": EVIL}),
    ]
    return [*OPENS, *chunks, *end]


HOSTILE = _said()
HOSTILE_HTTP = hostile(EVIL.replace("\0", ""))
HTTP_HEADER = {"transport": "http", "label": f"label {EVIL}", "listen": f"http://{EVIL}", "upstream": EVIL}
TAGS = """
html head meta title style body header p h1 h2 h3 code dl div dt dd main section span small ul li b a em table thead
tbody tr th td canvas button i label input output kbd noscript ol details summary u pre samp script footer
"""
ATTRIBUTES = """
lang charset http-equiv content name class id role scope tabindex hidden type for autocomplete autocapitalize spellcheck
placeholder href
"""


@pytest.mark.parametrize(("said", "header"), [(HOSTILE, HEADER), (HOSTILE_HTTP, HTTP_HEADER)])
def test_only_our_elements_and_attributes_are_on_the_page(said: list[Record], header: dict[str, str]) -> None:
    page = Elements(html(said, **header))
    assert {tag for tag, _ in page.found} <= set(TAGS.split())
    names = {name for _, attributes in page.found for name in attributes}
    assert {name for name in names if not name.startswith("aria-")} <= set(ATTRIBUTES.split())
    values = {(name, value or "") for _, attributes in page.found for name, value in attributes.items()}
    values = {(name, value) for name, value in values if not value.startswith("default-src")}  # hashes in base64
    assert all(re.fullmatch(r"#n[0-9]+", value) for name, value in values if name == "href")
    assert not [value for _, value in values if re.search(r"https?:|//|javascript:|data:|x\.test", value)]
    assert all(re.fullmatch(r"[a-z0-9 -]*", value) for name, value in values if name in ("id", "class", "role"))


_MARKUP = st.sampled_from(
    ["<", ">", "&", '"', "'", "/", "script", "<!--", "]]>", "</pre>", "&#60;", "\\u003c", "\n", "\0"]
)


@given(st.lists(_MARKUP | st.text(max_size=3), max_size=12).map("".join), st.binary(max_size=30))
@settings(max_examples=60)
def test_whatever_is_captured_the_elements_are_ours(text: str, raw: bytes) -> None:
    said = json.dumps({"jsonrpc": "2.0", "id": text, "method": text, "params": {text: text}}, ensure_ascii=False)
    line_ = said.encode(errors="surrogatepass").replace(b"\n", b" ") + b"\n"
    chunks = [(0, line_), (1, raw + b"\n"), (1, line_[:-9] + b"\n"), (2, raw + text.encode(errors="replace") + b"\n")]
    records = [*OPENS, *(Record(number, "chunk", *chunk) for number, chunk in enumerate(chunks, 1))]
    page = Elements(html(records, label=text, cwd=text))
    assert {tag for tag, _ in page.found} <= set(TAGS.split())
    assert {name for _, found in page.found for name in found if not name.startswith("aria-")} <= set(
        ATTRIBUTES.split()
    )
    assert all(re.fullmatch(r"#n[0-9]+", found["href"] or "") for _, found in page.found if "href" in found)


def test_the_text_is_there_as_it_was_captured() -> None:
    text = Elements(html(HOSTILE, **HEADER)).text
    assert text.count(SHOWN) > 20
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202e\u2066]", text)
    over_http = Elements(html(HOSTILE_HTTP, **HTTP_HEADER)).text
    assert over_http.count(SCRIPT) > 8
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202e\u2066]", over_http)


def test_the_scripts_hold_numbers_and_our_own_code_and_the_policy_names_them() -> None:
    page = Elements(html(HOSTILE, **HEADER))
    data, code = page.code["script"]
    assert re.fullmatch(r"[\[\]0-9,\n-]*", data)
    assert json.loads(data)
    assert code == Elements(html(OPENS)).code["script"][1], "the script is the same for every capture"
    (policy,) = [
        found["content"] or "" for tag, found in page.found if found.get("http-equiv") == "Content-Security-Policy"
    ]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    assert rules["script-src"] == f"'sha256-{b64encode(sha256(code.encode()).digest()).decode()}'"
    assert rules["style-src"] == f"'sha256-{b64encode(sha256(page.code['style'][0].encode()).digest()).decode()}'"
    assert "unsafe" not in policy


def test_in_a_browser_nothing_of_it_runs_or_loads(opened: Opened) -> None:
    browser = opened(HOSTILE, **HEADER)
    title = browser.js("document.title")
    assert title.startswith("label </script>")
    browser.js("document.querySelectorAll('details').forEach(one => one.open = true)")
    browser.settle()
    browser.click("#filter")
    browser.type("evil")
    browser.until("document.getElementById('shown').textContent.includes(' of ')")
    browser.js("document.querySelector('canvas').focus()")
    browser.press("ArrowRight", "ArrowRight", "ArrowRight")
    assert "<img" in browser.js("document.getElementById('told').textContent")
    browser.settle()
    assert browser.js("document.title") == title
    assert browser.js("document.querySelectorAll('img, svg, iframe, object, base, link, form').length") == 0
    assert browser.js("document.scripts.length") == 2
    assert browser.js("performance.getEntriesByType('resource').length") == 0


def test_in_a_browser_nothing_of_http_runs_or_loads(opened: Opened) -> None:
    browser = opened(HOSTILE_HTTP, **HTTP_HEADER)
    assert browser.js("document.querySelectorAll('#messages li.http').length") >= 6
    assert browser.js("document.querySelectorAll('img, svg, iframe, object, base, link, form').length") == 0
    assert browser.js("performance.getEntriesByType('resource').length") == 0
    assert SCRIPT in browser.js("document.body.innerText")


def test_in_a_browser_it_shows_literally_and_without_invisible_characters(opened: Opened) -> None:
    browser = opened(HOSTILE, **HEADER)
    browser.js("document.querySelectorAll('details').forEach(one => one.open = true)")
    browser.settle()
    text = browser.js("document.body.innerText")
    assert SCRIPT in text
    assert IMAGE in text
    assert r"\u202eevil" in text
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202e\u2066]", text)
    # JSON inside a string was decoded by the script: what was hidden in it is spelt out again.
    inside = browser.js(
        "[...document.querySelectorAll('pre')].map(one => one.textContent).filter(one => one.includes('(JSON in a'))"
    )
    assert len(inside) == 2
    assert all("</script>" in one and r"\u202eevil" in one for one in inside)


@pytest.mark.parametrize("attack", ["script", "inline", "style", "request"])
def test_the_policy_holds_should_our_escaping_ever_fail(opened: Opened, chromium, tmp_path: Path, attack: str) -> None:
    """The second line of defence, tried on a page into which the markup was put by force."""
    planted = {
        "script": "<script>document.title='pwned'</script>",
        "inline": "<img src=x onerror=\"document.title='pwned'\"><svg onload=\"document.title='pwned'\"></svg>",
        "style": "<style>body { display: none }</style><p id=attack style='position:fixed'>x</p>",
        "request": "<img src=https://x.test/p><iframe src=https://x.test/f></iframe>"
        "<link rel=stylesheet href=https://x.test/s>",
    }[attack]
    page = html(HOSTILE, **HEADER).decode().replace("<main>", f"<main>{planted}", 1)
    path = tmp_path / "planted.html"
    path.write_text(page, encoding="utf-8")
    chromium.open(path)
    assert "pwned" not in chromium.js("document.title")[:5]
    assert chromium.js("getComputedStyle(document.body).display") == "block"
    assert chromium.js("getComputedStyle(document.getElementById('attack') ?? document.body).position") == "static"
    said = chromium.complaints()
    assert any("Content Security Policy" in one for one in said), "the browser says that it refused"
    assert not [
        event for event in chromium.events if event["method"] == "Network.responseReceived" and "x.test" in str(event)
    ]
    chromium.events.clear()
