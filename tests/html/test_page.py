"""What the page says, and what it does when somebody uses it."""

import json
import os
import re
from collections.abc import Sequence
from itertools import pairwise

import pytest

from mcpsniff.capture.records import Record
from mcpsniff.transcript.html import assets
from mcpsniff.transcript.payload import NONE, WHOLE
from mcpsniff.transcript.pretty import pretty
from tests.filter.sample_http import DIALOGUE, FIRST, SECOND
from tests.html.chromium import Browser
from tests.html.conftest import Opened
from tests.html.pages import Elements, html
from tests.sessions import OPENS, end, records
from tests.transcript.golden import HEADER, SESSION
from tests.transcript.http_sessions import records as records_over_http

ROWS = """\
0.001 | 2 | initialize | id 0 | 174 B [answered #4]
0.002 | 4 | initialize | id 0 | 160 B | 1.2 ms [answered #2]
0.003 | 7 | notifications/initialized | 54 B
0.004 | 9 | tools/call | echo | id 1 | 123 B [answered #13]
0.006 | 11 | notifications/progress | t | 1 of 2 | 105 B [of #9]
0.007 | 13 | tools/call | echo | id 1 | 84 B | 2.4 ms [answered #9]
0.008 | 15 | stderr | working on it
0.009 | 17 | not JSON | 16 B
! ✗ error MCP101 stdio-not-json, by the server: the server wrote text to stdout, which is for messages only: \
"ready <b>now</b>" Fix: Send everything that is not a message to stderr.
0.020 | 18 | the client closed the server's stdin
0.021 | 19 | the server exited with status 0"""

READ_ROWS = """[...document.querySelectorAll('#messages li')].filter(one => !one.hidden).map(item => {
  const line = item.querySelector('summary, p:not([class])');
  const tie = item.querySelector(':scope > a');
  const cells = [...line.children].map(one => one.textContent).filter(Boolean);
  return [cells.join(' | ') + (tie ? ` [${tie.textContent}]` : ''),
    ...[...item.querySelectorAll(':scope > p[class]')].map(one => '! ' + one.textContent)].join('\\n');
}).join('\\n')"""

REPLY = {"content": [{"type": "text", "text": "fine"}]}


def _call(number: object, tool: str) -> tuple[str, object]:
    return "c2s", {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": tool}}


def _answer(number: object, result: object = REPLY) -> tuple[str, object]:
    return "s2c", {"jsonrpc": "2.0", "id": number, "result": result}


OPENING = {"protocolVersion": "2025-11-25", "capabilities": {"roots": {}}, "clientInfo": {"name": "c", "version": "1"}}
OPENED = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}

MIXED = [
    *records(
        ("c2s", {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": OPENING}),
        _answer(0, OPENED),
        ("c2s", {"jsonrpc": "2.0", "method": "notifications/initialized"}),
        _call(1, "good"),
        _answer(1),
        _call(2, "refused"),
        ("s2c", {"jsonrpc": "2.0", "id": 2, "error": {"code": -32602, "message": "no such thing"}}),
        _call(3, "slow"),
        ("c2s", {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 3, "reason": "bored"}}),
        ("s2c", {"jsonrpc": "2.0", "id": 7, "method": "roots/list"}),
        ("c2s", {"jsonrpc": "2.0", "id": 7, "result": {"roots": []}}),
        ("err", "a line of stderr"),
        _call("7", "lost"),
        ("s2c", "Ready!"),
        step=1000,
    ),
    *end(20_000),
]


def shown(browser: Browser) -> list[int]:
    """The numbers of the rows that the filter leaves."""
    ids = browser.js(
        "[...document.querySelectorAll('#messages li')].filter(one => !one.hidden && one.id).map(one => one.id)"
    )
    return [int(one[1:]) for one in ids]


def narrow(browser: Browser, text: str) -> list[int]:
    """Write a filter, and read what it leaves once it has done so."""
    browser.js("shown.textContent = ''; filter.value = ''; filter.blur()")
    browser.press("/")
    browser.type(text)
    browser.until("document.getElementById('shown').textContent !== ''")
    return shown(browser)


def test_the_rows_of_a_small_session(opened: Opened) -> None:
    assert opened(SESSION, **HEADER).js(READ_ROWS) == ROWS


def test_the_head_the_summary_and_the_findings(opened: Opened) -> None:
    browser = opened(SESSION, **HEADER)
    said = browser.js("document.body.innerText")
    assert browser.js("document.title") == "time: MCP session"
    for words in (
        "MCP session with time",
        "python server.py --name 'a b'",
        "2025-11-25",
        "s 2 (S!)",
        "roots (listChanged)",
        "1 error\n",
        "7 messages in 21.0 ms: 2 requests, 2 responses, 2 notifications, 1 invalid.",
        "The client sent 351 B in 3 messages, the server sent 365 B in 4 messages, 1 line on stderr.",
    ):
        assert words in said
    table = browser.js(
        "[...document.querySelectorAll('tbody tr')].map(one => [...one.children].map(c => c.innerText).join('|'))"
    )
    assert table == [
        "initialize|1|||1.2 ms|1.2 ms|1.2 ms",
        "tools/call|1|||2.4 ms|2.4 ms|2.4 ms",
        "echo|1|||2.4 ms|2.4 ms|2.4 ms",
    ]


def test_requests_without_an_answer_are_named(opened: Opened) -> None:
    said = opened(MIXED).js("document.getElementById('summary').innerText")
    assert "1 request without an answer" in said
    assert 'tools/call lost id "7", abandoned' in said
    assert "1 request cancelled" in said
    assert "tools/call slow id 3, cancelled after 1.0 ms" in said


def test_a_payload_unfolds_laid_out_from_its_own_text(opened: Opened) -> None:
    browser = opened(SESSION, **HEADER)
    assert browser.js("document.querySelectorAll('details[open]').length") == 0
    browser.click("#n13 summary")
    browser.until("document.querySelector('#n13 pre:last-child').checkVisibility()")
    assert browser.js("[...document.querySelectorAll('#n13 pre')].map(one => one.checkVisibility())") == [False, True]
    assert browser.js("document.querySelector('#n13 pre:last-child').innerText") == (
        '{\n  "jsonrpc": "2.0",\n  "id": 1,\n  "result": {\n    "content": [\n      {\n        "type": "text",\n'
        '        "text": (JSON in a string) {"n": 1.0}\n      }\n    ]\n  }\n}'
    )
    browser.click("#n13 summary")
    browser.until("!document.querySelector('#n13 details').open")


SAMPLES = (
    '{"a":1.0,"b":[1e2,-0,12345678901234567890,"\\/\\u0041"],"c":{},"d":[],"e":null}',
    '[[[[1,2,3]]],{"x":{"y":{"z":["a long string that takes some room","another one","and a third one of them"]}}}]',
    '"just a string with \\"quotes\\" and a backslash \\\\"',
    '{"text":"{\\"inner\\": [1.50, {\\"text\\": \\"[1]\\"}]}"}',
    '{"text":"{not json"}',
    '{"text":"[1, 2] and more"}',
    '{"a":"\u202e\x7f \u00e9 \U0001f9d1\u200d\U0001f4bb \u4e2d"}',
    '{"broken": [1, 2',
    '{"broken": "no end',
    '{"a":1} trailing ~ rubbish',
    "[" * 200 + "]" * 200,
    json.dumps({f"name{number}": list(range(number)) for number in range(40)}),
)


def test_the_browser_lays_out_what_the_other_forms_lay_out(opened: Opened) -> None:
    """The same tokens in the same order and spelling as `mcpsniff.transcript.pretty`; only line breaks may differ."""
    said = [("c2s", f'{{"jsonrpc":"2.0","method":"x","params":{sample}}}') for sample in SAMPLES]
    browser = opened(records(*said))
    browser.js("document.querySelectorAll('details').forEach(one => one.open = true)")
    browser.settle()
    laid = browser.js(
        "[...document.querySelectorAll('details')].map(one => [...one.querySelectorAll('pre')].at(-1).textContent)"
    )
    assert len(laid) == len(SAMPLES)
    for (_, text), one in zip(said, laid, strict=True):
        lines = ["".join(piece for _, piece in line) for line in pretty(text, 92)]
        assert re.sub(r"\s", "", one) == re.sub(r"\s", "", "".join(lines))


def test_long_payloads_are_laid_out_whole_and_in_bounded_pieces(opened: Opened) -> None:
    values = list(range(150_000))
    browser = opened(records(("c2s", {"jsonrpc": "2.0", "id": 1, "method": "x", "params": values})))
    browser.click("#n2 summary")
    browser.until("document.querySelector('#n2 button') !== null")
    more = browser.js("document.querySelector('#n2 button').textContent")
    assert re.fullmatch(r"… [0-9,]+ more characters", more)
    browser.js("document.querySelector('#n2 button').click()")
    text = browser.js("document.querySelector('#n2 pre:last-child').textContent")
    assert json.loads(text)["params"] == values


def test_a_jump_goes_to_the_answer_and_back_and_marks_both(opened: Opened) -> None:
    browser = opened(SESSION, **HEADER)
    browser.click("#n9 > a")
    browser.until("document.querySelector('.here') !== null")
    assert browser.js("[location.hash, document.querySelector('.here').id]") == ["#n13", "n13"]
    assert browser.js("[...document.querySelectorAll('.mate')].map(one => one.id)") == ["n9", "n11", "n13"]
    assert browser.js("document.activeElement.closest('li').id") == "n13"
    browser.press("x")
    assert browser.js("document.querySelector('.here').id") == "n9"
    browser.js("history.back()")
    browser.until("document.querySelector('.here')?.id === 'n13'")


def test_a_finding_jumps_to_its_message(opened: Opened) -> None:
    browser = opened(SESSION, **HEADER)
    browser.click("#findings a")
    assert browser.js("document.querySelector('.here').id") == "n17"


def test_a_finding_that_repeats_shows_all_of_its_places(opened: Opened) -> None:
    browser = opened([*records(*[("s2c", f"noise {number}") for number in range(9)])])
    assert len(browser.js("[...document.querySelectorAll('#findings a')].map(one => one.hash)")) == 5
    browser.click("#findings button")
    assert browser.js("document.getElementById('filter').value") == "code:MCP101"
    assert len(shown(browser)) == 9


def test_every_jump_of_the_page_leads_somewhere(opened: Opened) -> None:
    browser = opened(
        [*records(("s2c", "not json"), ("s2c", "\ufeff{}"), ("s2c", b"\xff\n"), ("s2c", ""), ("c2s", " ")), *MIXED[3:]]
    )
    assert (
        browser.js(
            "[...document.querySelectorAll('a')].filter(one => !document.getElementById(one.hash.slice(1))).length"
        )
        == 0
    )
    assert browser.js("document.querySelectorAll('#findings a').length") > 0


def test_an_address_with_a_number_opens_there(opened: Opened) -> None:
    assert opened(SESSION, fragment="#n13", **HEADER).js("document.querySelector('.here').id") == "n13"


WORDS = {
    "good": '"good"',
    "refused": '"refused"',
    "slow": '"slow"',
    "roots": "roots/list",
    "err": "a line of stderr",
    "lost": '"lost"',
    "noise": "not JSON",
}
"""What tells the exchanges of MIXED apart."""


@pytest.mark.parametrize(
    ("text", "tools"),
    [
        ("method:tools/call", "good refused slow lost"),
        ("method:tools/*", "good refused slow lost"),
        ("tool:good", "good"),
        ("state:errored", "refused"),
        ("state:cancelled", "slow"),
        ("state:abandoned", "lost"),
        ("dir:s2c", "roots noise"),
        ("dir:client", "good refused slow lost"),
        ("kind:error", "refused"),
        ("kind:stderr", "err"),
        ("method:tools/call kind:error", "refused"),
        ("method:tools/call -kind:error", "good slow lost"),
        ("not method:tools/* dir:c2s not method:initialize", ""),
        ("id:7", "roots"),
        ('id:"7"', "lost"),
        ("severity:error", "noise"),
        ("severity:>=note text:Ready", "noise"),
        ("code:MCP1", "noise"),
        ("code:stdio-not-json", "noise"),
        ('text:"No Such"', "refused"),
        ("bored", "slow"),
        ("nothing-of-the-kind", ""),
    ],
)
def test_the_filter(opened: Opened, text: str, tools: str) -> None:
    browser = opened(MIXED)
    left = narrow(browser, text)
    texts = browser.js(
        "[...document.querySelectorAll('#messages li')].filter(one => !one.hidden).map(one => one.textContent)"
    )
    assert [name for name, words in WORDS.items() if any(words in one for one in texts)] == tools.split()
    assert browser.js("document.getElementById('shown').textContent").startswith(f"{len(left)} of ")
    assert browser.js("document.getElementById('none').hidden") is bool(left)


def test_the_filter_is_left_with_escape_and_by_a_jump(opened: Opened) -> None:
    browser = opened(MIXED)
    everything = shown(browser)
    assert len(narrow(browser, "tool:good")) == 2
    browser.press("Escape")
    assert shown(browser) == everything
    narrow(browser, "tool:good")
    browser.press("Enter")
    assert browser.js("document.activeElement.tagName") == "SUMMARY"
    browser.click("#findings a")
    assert shown(browser) == everything, "what a jump leads to is shown"


def test_the_keyboard_alone_is_enough(opened: Opened) -> None:
    browser = opened(MIXED)

    def here() -> str:
        return str(
            browser.js(
                "document.querySelector('.here .here, .here')?.querySelector('i:nth-child(2)').textContent ?? ''"
            )
        )

    numbers = shown(browser)
    browser.press("n")
    assert here() == str(numbers[0])
    browser.press("n", "n")
    assert here() == str(numbers[2])
    browser.press("p")
    assert here() == str(numbers[1])
    browser.press("Enter")
    assert browser.js("document.querySelector('.here details').open") is True
    browser.press("Enter")
    assert browser.js("document.querySelector('.here details').open") is False
    browser.press("f")
    assert browser.js("document.querySelector('.here > p[class]') !== null")
    browser.press("Escape")
    assert browser.js("document.querySelector('.here')") is None
    browser.press("/")
    assert browser.js("document.activeElement.id") == "filter"


def test_the_timeline_has_a_bar_for_each_exchange_and_tells_them(opened: Opened) -> None:
    browser = opened(MIXED)
    bars = browser.js("JSON.parse(document.getElementById('bars').textContent)")
    assert [bar[3:5] for bar in sorted(bars)] == [[1, 0], [1, 0], [2, 0], [4, 0], [1, 1], [5, 0]]
    assert browser.js("document.getElementById('timeline').hidden") is False
    browser.js("document.querySelector('canvas').focus()")
    told = []
    for _ in bars:
        browser.press("ArrowRight")
        told.append(browser.js("document.getElementById('told').textContent"))
    assert [re.sub(r"^#\d+ | *(answered|errored|after) [0-9.]+ [mµ]?s| at [0-9.]+", "", one) for one in told] == [
        "initialize, id 0:,",
        "tools/call good, id 1:,",
        "tools/call refused, id 2:,",
        "tools/call slow, id 3: cancelled,",
        "roots/list, id 7:,, asked by the server",
        'tools/call lost, id "7": abandoned,',
    ]
    browser.press("Enter")
    assert browser.js("document.querySelector('.here').textContent").count("lost")


def test_the_timeline_follows_the_mouse(opened: Opened) -> None:
    browser = opened(MIXED)
    before = browser.js("document.getElementById('told').textContent")
    wide = browser.js("document.querySelector('canvas').clientWidth")
    browser.move("canvas", dx=wide * 0.9, dy=30)
    assert browser.js("document.getElementById('told').textContent") != before
    assert "lost" in browser.js("document.getElementById('told').textContent")
    drawn = "document.querySelector('canvas').toDataURL().length"
    whole = browser.js(drawn)
    browser.click("#zoom button")
    assert browser.js(drawn) != whole


def _colours(browser: Browser) -> list[str]:
    return list(
        browser.js("(() => { const of = getComputedStyle(document.body); return [of.color, of.backgroundColor]; })()")
    )


def test_light_and_dark(opened: Opened) -> None:
    browser = opened(SESSION, **HEADER)
    light = _colours(browser)
    browser.click("#theme")
    dark = _colours(browser)
    assert dark != light
    browser.click("#theme")
    assert _colours(browser) == light
    browser = opened(SESSION, **HEADER)
    browser.dark(on=True)
    assert _colours(browser) == dark, "what the system prefers is what the button changes to"


def _luminance(colour: str) -> float:
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("dark", [False, True])
def test_all_text_has_the_contrast_of_wcag_aa(opened: Opened, dark: bool) -> None:
    browser = opened(MIXED, **HEADER)
    browser.dark(on=dark)
    browser.js("document.querySelectorAll('details').forEach(one => one.open = true)")
    browser.press("n")
    browser.settle()
    pairs = browser.js("""[...new Set([...document.querySelectorAll('body *')]
      .filter(one => one.checkVisibility() && [...one.childNodes].some(node => node.nodeType === 3 && node.data.trim()))
      .map(one => {
        let under = one;
        while (under && getComputedStyle(under).backgroundColor === 'rgba(0, 0, 0, 0)') under = under.parentElement;
        return `${getComputedStyle(one).color}|${getComputedStyle(under ?? document.body).backgroundColor}`;
      }))]""")
    assert len(pairs) > 6
    for pair in pairs:
        light, deep = sorted((_luminance(colour) for colour in pair.split("|")), reverse=True)
        assert (light + 0.05) / (deep + 0.05) >= 4.5, pair


@pytest.mark.parametrize("width", [320, 360, 768])
def test_a_phone_needs_no_scrolling_to_the_side(opened: Opened, width: int) -> None:
    browser = opened(MIXED, argv=["server", "--path", "/a/very/long/path" * 20], transport="stdio")
    browser.size(width, 700, mobile=True)
    browser.js("document.querySelectorAll('details').forEach(one => one.open = true)")
    browser.settle()
    assert browser.js("document.documentElement.scrollWidth") <= width


def test_print_has_payloads_and_no_controls(opened: Opened) -> None:
    browser = opened(SESSION, **HEADER)
    short = len(browser.pdf())
    assert browser.js("document.querySelectorAll('details[open]').length") == 0, "folded again after printing"
    browser.call("Emulation.setEmulatedMedia", media="print")
    gone = browser.js("['bar', 'keys', 'zoom', 'told'].filter(id => document.getElementById(id).checkVisibility())")
    browser.call("Emulation.setEmulatedMedia", media="")
    assert gone == []
    browser = opened(SESSION, style=NONE, **HEADER)
    assert len(browser.pdf()) < short, "the payloads are on the paper"


def test_without_scripts_everything_can_be_read(opened: Opened, chromium: Browser) -> None:
    chromium.scripts(on=False)
    browser = opened(SESSION, **HEADER)
    chromium.scripts(on=True)  # for the questions of this test; what the page holds was read without
    said = browser.js("document.body.innerText")
    assert "Scripts are off." in said
    assert "tools/call" in said
    assert "Send everything that is not a message to stderr." in said
    assert browser.js("['bar', 'keys', 'timeline'].every(id => document.getElementById(id).hidden)")
    assert browser.js("getComputedStyle(document.querySelector('#n13 summary')).display") != "none"
    assert browser.js("document.querySelector('#n13 pre').textContent").startswith('{"jsonrpc":"2.0","id":1,')


def test_payloads_open_or_absent_as_asked(opened: Opened) -> None:
    browser = opened(SESSION, style=WHOLE, **HEADER)
    assert browser.js("document.querySelectorAll('details:not([open])').length") == 0
    assert "(JSON in a string)" in browser.js("document.body.innerText")
    assert opened(SESSION, style=NONE, **HEADER).js("document.querySelectorAll('details, pre').length") == 0


def test_gaps_and_an_end_without_an_end_are_said() -> None:
    cut = [*records(_call(1, "a")), Record(5000, "gap", 1, {"bytes": 12, "why": "queue"})]
    said = Elements(html(cut, transport="stdio")).text
    assert "12 B of the server's stdout is missing from this capture" in said
    assert "without an end of the session" in said


def test_a_request_whose_answer_may_be_missing_has_its_bar() -> None:
    cut = [*records(_call(1, "a")), Record(5000, "gap", 1, {"bytes": 12, "why": "queue"})]
    page = html(cut, transport="stdio")
    assert "this capture may lack its answer" in Elements(page).text
    assert re.search(rb"\[\d+,\d+,\d+,7,0,\d+\]", page), "7 is unseen in rows.js"


def test_nothing_was_said(opened: Opened) -> None:
    browser = opened(OPENS)
    assert "0 messages" in browser.js("document.body.innerText")
    assert browser.js("document.getElementById('timeline').hidden") is True


def _many(number: int) -> Sequence[Record]:
    said = []
    for one in range(1, number // 2 + 1):
        call = {"name": "echo", "arguments": {"message": f"hello {one}"}}
        said.append(("c2s", {"jsonrpc": "2.0", "id": one, "method": "tools/call", "params": call}))
        said.append(_answer(one, {"content": [{"type": "text", "text": f"Echo: hello {one}"}], "isError": False}))
    return records(*said, step=700)


def test_a_long_page_stays_under_three_times_its_payload(opened: Opened) -> None:
    many = _many(20_000)
    page = html(many)
    assert len(page) < 3 * sum(len(one.body) for one in many if one.kind == "chunk")
    browser = opened(many)
    assert browser.js("document.querySelectorAll('#messages li').length") == 20_000
    request, answer = narrow(browser, '"hello 9999"')
    assert "Echo: hello 9999" in browser.js(f"document.getElementById('n{answer}').textContent")
    assert browser.js(f"document.querySelector('#n{answer} > a').hash") == f"#n{request}"
    heights = browser.js("[...document.querySelectorAll('#messages ol')].map(one => one.offsetHeight)")
    assert sum(1 for height in heights if height) == 1, "lists without a match take no room"


def test_the_parts_of_the_script_are_short() -> None:
    for name in [*(f"{part}.js" for part in assets.SCRIPTS), "style.css"]:
        text = assets._read(name)
        assert text.count("\n") <= 400
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|https?:", text
        )
    steps = [assets.script().index(assets._read(f"{part}.js")) for part in assets.SCRIPTS]
    assert all(one < other for one, other in pairwise(steps))


def test_the_page_does_not_depend_on_the_machine() -> None:
    before = os.environ.get("TZ")
    os.environ["TZ"] = "Asia/Tokyo"
    try:
        assert html(SESSION, **HEADER) == html(SESSION, **HEADER)
    finally:
        os.environ.pop("TZ") if before is None else os.environ.update(TZ=before)


def test_http_has_a_lane_of_its_own(opened: Opened) -> None:
    browser = opened(records_over_http(DIALOGUE), transport="http")
    lines = browser.js(READ_ROWS).splitlines()
    for line in (
        "0.002 | 3 | 405 | POST | /sse | tried Streamable HTTP | conn 0 | 1.0 ms [refuses #2]",
        f"0.005 | 6 | endpoint | /messages?sessionId={FIRST}",
        "0.015 | 24 | end | stream #5 | 3 events | 1 keep-alive | by the client | 11.0 ms [stream #5]",
        f"0.020 | 32 | [2] | initialize | HTTP 200 | session {SECOND} | id 0 | 148 B | 1.0 ms [answered #30]",
        "0.635 | 52 | [2] | 200 | GET | /mcp | after event a1 | conn 2 | 1.0 ms [resumes #46]",
    ):
        assert line in lines
    assert not browser.js("document.querySelector('#legend .web').parentNode.hidden")
    assert "HTTP: 15 exchanges on 4 connections" in browser.js("document.getElementById('summary').innerText")
    assert browser.js("document.querySelectorAll('#messages a a, summary a').length") == 0
    browser.js("document.querySelector('canvas').focus()")
    browser.press("Home")
    told = browser.js("document.getElementById('told').textContent")
    assert told.startswith("#2 initialize, id 0: refused after 1.0 ms"), "what HTTP refused has a bar, too"


def test_without_http_there_is_no_word_of_it(opened: Opened) -> None:
    browser = opened(SESSION, **HEADER)
    assert browser.js("document.querySelector('#legend .web').parentNode.hidden")
    assert "HTTP" not in browser.js("document.body.innerText")


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("status:405", [2, 3, 67]),
        ("status:404", [28, 62, 64]),
        ("kind:http status:404", [28]),
        ("tool:echo", [17, 18, 20, 40, 42, 62, 64]),
        ("robots or well-known", []),
        ("oauth", [28]),
    ],
)
def test_the_filter_of_the_page_knows_http(opened: Opened, text: str, numbers: list[int]) -> None:
    assert narrow(opened(records_over_http(DIALOGUE), transport="http"), text) == numbers
