"""Hypothesis strategies: sessions in which everything meets everything, and expressions over them."""

import json

from hypothesis import strategies as st

from mcpsniff.capture.records import Record
from tests.sessions import OPENS

IDS = st.sampled_from([1, 2, 3, "1", 1.0, None])
TOKENS = st.sampled_from(["p", 1])
NAMES = st.sampled_from(["echo", "北京", "sleep"])


def _call(number: object, name: str, token: object) -> dict[str, object]:
    meta = {"_meta": {"progressToken": token}}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": name, **meta}}


def _one(**members: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", **members}


MESSAGES = st.one_of(
    st.builds(_call, IDS, NAMES, TOKENS),
    st.builds(_call, IDS, NAMES, TOKENS),
    st.builds(lambda i, m: _one(id=i, method=m), IDS, st.sampled_from(["ping", "tools/list", "initialize"])),
    st.builds(lambda i, u: _one(id=i, method="resources/read", params={"uri": u}), IDS, NAMES),
    st.builds(lambda i, n: _one(id=i, result={"text": n}), IDS, NAMES),
    st.builds(lambda i, n: _one(id=i, result={"text": n}), IDS, NAMES),
    st.builds(lambda i: _one(id=i, result={"isError": True}), IDS),
    st.builds(lambda i: _one(id=i, error={"code": -32603, "message": "boom"}), IDS),
    st.builds(lambda i: _one(id=i), IDS),
    st.builds(lambda i: _one(id=i, result={}, error={}), IDS),
    st.builds(
        lambda t: _one(method="notifications/progress", params={"progressToken": t, "progress": 1}),
        TOKENS,
    ),
    st.builds(lambda i: _one(method="notifications/cancelled", params={"requestId": i}), IDS),
    st.just(_one(method="notifications/initialized")),
)


def _line(value: object) -> bytes:
    return json.dumps(value).encode() + b"\n"


NOISE = st.sampled_from(
    [
        b"ready\n",
        b"\n",
        b"{\n",
        b"[\n",
        b'"a"\n',
        b"}\n",
        b"]\n",
        b'{"jsonrpc":\n',
        b'"2.0"}\n',
        b"[]\n",
        b"\xff\n",
        b"cut",
    ]
)
SAID = st.one_of(
    MESSAGES.map(_line), MESSAGES.map(_line), MESSAGES.map(_line), st.lists(MESSAGES, max_size=4).map(_line), NOISE
)
RECORDS = st.one_of(
    st.tuples(st.just("chunk"), st.integers(0, 1), SAID),
    st.tuples(st.just("chunk"), st.integers(0, 1), st.lists(SAID, min_size=2, max_size=4).map(b"".join)),
    st.tuples(st.just("chunk"), st.just(2), NOISE),
    st.sampled_from(
        [
            ("close", 0, {"how": "eof"}),
            ("close", 1, {"how": "eof"}),
            ("close", 1, {"how": "exit", "status": 3}),
            ("gap", 1, {"bytes": 5, "why": "queue"}),
            ("comment", None, {"text": "echo", "by": "me"}),
        ]
    ),
)
PAUSES = st.sampled_from([0, 10, 1_000, 1_000_000, 70_000_000])


def _records(said: list[tuple[tuple[str, int | None, object], int]]) -> list[Record]:
    made, t = list(OPENS), 0
    for (kind, channel, body), pause in said:
        t += pause
        made.append(Record(t, kind, channel, body))
    return made


SESSIONS = st.lists(st.tuples(RECORDS, PAUSES), max_size=30).map(_records)

PLAIN_TERMS = st.sampled_from(
    [
        "tool:echo",
        "tool:*",
        "uri:sleep",
        "method:tools/*",
        "method:ping",
        "method:notifications/*",
        "kind:request",
        "kind:response",
        "kind:error",
        "kind:batch",
        "kind:invalid",
        "kind:stderr",
        "kind:close",
        "dir:c2s",
        "dir:s2c",
        "state:answered",
        "state:cancelled",
        "state:abandoned",
        "state:open",
        "latency:>500ms",
        "id:1",
        'id:"1"',
        "id:null",
        "size:>60",
        "t:>1s",
        "n:5..20",
        "flaw:*",
        "has:error",
    ]
)
FOUND_TERMS = st.sampled_from(
    ["code:MCP1", "code:MCP4", "code:*", "severity:error", "blame:client", "has:finding", "text:北京", "echo", "server"]
)


def _joined(terms: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.recursive(
        terms,
        lambda inner: st.one_of(
            st.builds("not ({})".format, inner),
            st.builds("({}) ({})".format, inner, inner),
            st.builds("({}) or ({})".format, inner, inner),
        ),
        max_leaves=5,
    )


PLAIN = _joined(PLAIN_TERMS)
EXPRESSIONS = _joined(PLAIN_TERMS | FOUND_TERMS)
