"""Whatever passes: rules never fail, what they do not match keeps its bytes, and what leaves is JSON."""

import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.rules.staging import Stage
from tests.rules.test_actions import FILE, by_options

METHODS = st.sampled_from(
    [
        "tools/call", "tools/list", "prompts/get", "prompts/list", "resources/read", "resources/list",
        "resources/templates/list", "completion/complete", "notifications/message", "notifications/cancelled",
        "notifications/progress", "notifications/resources/updated", "sampling/createMessage", "ping", "",
    ]
)  # fmt: skip
NAMES = st.sampled_from(["shell", "echo", "say", "delete_x", "search", "fetch", "flaky", "greet", "file:///secret/a"])
LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.just(2**70), st.floats(), NAMES, st.text(max_size=3)
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(
                [
                    "name",
                    "uri",
                    "ref",
                    "type",
                    "arguments",
                    "tools",
                    "prompts",
                    "_meta",
                    "content",
                    "secret",
                    "requestId",
                ]
            ),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=8,
)
MESSAGES = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.just("2.0"),
        "id": LEAVES,
        "method": st.one_of(METHODS, LEAVES),
        "params": st.one_of(
            VALUES, st.fixed_dictionaries({"name": st.one_of(NAMES, VALUES)}, optional={"arguments": VALUES})
        ),
        "result": st.one_of(VALUES, st.dictionaries(st.sampled_from(["tools", "prompts", "resources"]), VALUES)),
        "error": VALUES,
    },
)
SAID = st.lists(
    st.tuples(st.sampled_from(["c2s", "s2c"]), st.one_of(MESSAGES, VALUES, st.lists(MESSAGES, max_size=3))), max_size=8
)


@given(SAID)
def test_rules_never_fail(tmp_path_factory: Any, said: list[tuple[str, Any]]) -> None:
    file = Path(tmp_path_factory.getbasetemp()) / "rules.toml"
    if not file.exists():
        file.write_text(FILE, encoding="utf-8")
    between = Stage(
        by_options(
            rules=[str(file)],
            block=["tool:shell", "prompt:greet", "resource:file:///secret/*", "text:never"],
            map_tool=["echo=say", "search=fetch"],
            set_argument=["a=1", "say.b=[2]"],
            respond=['tool:fetch={"x":1}', 'method:ping={"error":{"code":1,"message":"no"}}'],
        )
    )
    for direction, message in said:
        between.say(direction, message)
    for text in (*between.to_client(), *between.to_server()):
        json.loads(text)
    assert between.told == []
    between.editor.end()


@given(SAID)
def test_what_no_rule_matches_keeps_its_bytes(said: list[tuple[str, Any]]) -> None:
    between = Stage(by_options(block=["tool:nobody"], map_tool=["no=one"], set_argument=["nobody.a=1"]))
    texts: dict[str, list[bytes]] = {"c2s": [], "s2c": []}
    for direction, message in said:
        text = json.dumps(message, ensure_ascii=False).encode(errors="replace")
        texts[direction].append(text)
        between.say(direction, text)
    assert (between.to_server(), between.to_client()) == (texts["c2s"], texts["s2c"])
    assert between.outs == []
