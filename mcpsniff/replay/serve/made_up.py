"""Answers that are in no capture: for what was never recorded, for what it lacks, for what is no message.

All are JSON-RPC errors (JSON-RPC 2.0 section 5.1) whose message says in one sentence what the trouble is.
"""

import shlex
from typing import Any, Final

import orjson

from mcpsniff.export.redact.values import PSEUDONYM
from mcpsniff.protocol.exchange import target_of
from mcpsniff.protocol.message import BATCH, Message
from mcpsniff.protocol.paths import path_text
from mcpsniff.protocol.reading import NOT_JSON, is_strict
from mcpsniff.replay.compare import ABSENT, Difference, compare
from mcpsniff.replay.match import Miss, Rules, canonical, counted_params
from mcpsniff.replay.script import Scene

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603

MOST_TOLD: Final = 20
"""Differences that an answer names."""
BRIEF: Final = 60
"""Characters of a value in a sentence."""
LONGEST_VALUE: Final = 2_000
"""Bytes of JSON up to which a value is repeated in an answer."""


def error(token: str | None, code: int, text: str, data: object = None) -> bytes:
    """A JSON-RPC error under an id, which is given as its JSON token; None stands for an id that is not known."""
    body: dict[str, object] = {"code": code, "message": text}
    if data is not None:
        body["data"] = data
    return _under(token, b'"error":' + _json(body))


def result(token: str | None, value: dict[str, object]) -> bytes:
    """A JSON-RPC response under an id."""
    return _under(token, b'"result":' + _json(value))


def _under(token: str | None, member: bytes) -> bytes:
    name = b"null" if token is None else token.encode(errors="backslashreplace")
    return b'{"jsonrpc":"2.0","id":' + name + b"," + member + b"}"


def _json(value: object) -> bytes:
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:
        return canonical(value)


def differences(miss: Miss, rules: Rules) -> list[Difference]:
    """How a request that was not recorded differs, by the rules of matching, from the nearest; empty without one."""
    if miss.nearest is None or miss.nearest.cue is None:
        return []
    recorded, asked = (counted_params(one.body.get("params"), rules) for one in (miss.nearest.cue, miss.asked))
    return compare(recorded, asked, at=("params",))


def miss_text(miss: Miss, found: list[Difference], *, with_values: bool = True) -> str:
    """A miss in one sentence; ``with_values`` also has what was asked and what was recorded at each place."""
    asked, near = miss.asked, miss.nearest
    target = target_of(asked)
    what = f"{asked.method} {target}" if target else f"{asked.method}"
    if near is None or near.cue is None:
        return f"{what} is not in the capture: this method was never recorded"
    if miss.others:
        return f"{what} is not in the capture: {asked.method} was recorded only for {_few(list(miss.others))}"
    places = [path_text(one.path) + (f" ({_values(one)})" if with_values else "") for one in found]
    if not places:
        return f"{what} is not in the capture as it is asked for; the nearest recorded request is #{near.cue.n}"
    return f"{what} is not in the capture; the nearest recorded request, #{near.cue.n}, differs in {_few(places)}"


def _few(texts: list[str]) -> str:
    """The first of them, and how many more there are."""
    more = f" and {len(texts) - 3:,} more" if len(texts) > 4 else ""
    return ", ".join(texts[:3] if more else texts) + more


def _values(one: Difference) -> str:
    """What is asked now, and what was recorded, in few words."""
    if one.recorded is ABSENT:
        return f"now {_brief(one.live)}, not there when it was recorded"
    recorded = _brief(one.recorded)
    if isinstance(one.recorded, str) and PSEUDONYM.search(one.recorded.encode(errors="replace")):
        recorded += ", which stands for what `mcpsniff redact` has removed"
    return f"{'not there now' if one.live is ABSENT else f'now {_brief(one.live)}'}, recorded {recorded}"


def _brief(value: Any) -> str:
    text = canonical(value).decode(errors="replace")
    return text if len(text) <= BRIEF else f"{text[: BRIEF - 1]}…"


def remedies(miss: Miss, found: list[Difference]) -> str:
    """What to do so that a request is found all the same; empty where nothing but another recording helps."""
    if miss.nearest is None or miss.others or not found:
        return ""
    if len(found) > 2:
        return "--match method takes it for the recorded one"
    paths = " ".join(f"--ignore {shlex.quote(path_text(one.path))}" for one in found)
    return f"{paths}, or --match method, takes it for the recorded one"


def miss_answer(miss: Miss, rules: Rules) -> bytes:
    """The answer to a request that was never recorded: what was asked, what is nearest, how it differs."""
    asked, near = miss.asked, miss.nearest
    found = differences(miss, rules)
    data: dict[str, object] = {"asked": {"method": asked.method, "params": short(asked.body.get("params"))}}
    if near is not None and near.cue is not None:
        params = short(near.cue.body.get("params"))
        data["nearest"] = {"n": near.cue.n, "method": near.method, "params": params}
        data["differences"] = told(found)
    if hint := remedies(miss, found):
        data["hint"] = hint
    code = METHOD_NOT_FOUND if near is None else INVALID_PARAMS
    return error(asked.id, code, miss_text(miss, found), data)


def told(found: list[Difference] | tuple[Difference, ...]) -> list[dict[str, object]]:
    """Differences as JSON: ``path``, ``kind``, and the values ``recorded`` and ``live`` where there are such."""
    lines = []
    for one in found[:MOST_TOLD]:
        line: dict[str, object] = {"path": path_text(one.path), "kind": one.kind}
        for name, value in (("recorded", one.recorded), ("live", one.live)):
            if value is not ABSENT:
                line[name] = short(value)
        lines.append(line)
    return lines


def short(value: Any) -> object:
    """A JSON value as it is, or the beginning of its text if it is long."""
    text = canonical(value)
    if len(text) <= LONGEST_VALUE:
        try:
            return orjson.loads(text)
        except orjson.JSONDecodeError:
            pass
    return f"{text[:LONGEST_VALUE].decode(errors='replace')}…"


def cut_answer(scene: Scene, token: str | None) -> bytes:
    """The answer where that of the recording is not in the capture."""
    number = "" if scene.cue is None else f" (#{scene.cue.n} there)"
    return error(token, INTERNAL_ERROR, f"the answer to {scene.method}{number} is not in the capture")


def refused_answer(scene: Scene, token: str | None) -> bytes:
    """The answer to what HTTP refused, where it is played without HTTP: the recorded error, or the status."""
    status = None if scene.web is None else scene.web.http.status
    said = next((message.error for message in scene.messages("s2c") if message.error), None)
    if said is not None and isinstance(said.get("code"), int) and isinstance(said.get("message"), str):
        return error(token, said["code"], said["message"], said.get("data"))
    return error(token, INVALID_REQUEST, f"HTTP refused the recorded {scene.method} with status {status}")


def invalid_answer(message: Message) -> bytes:
    """The answer to what is no JSON (-32700), or no message of JSON-RPC, such as an empty batch (-32600; section 6)."""
    if NOT_JSON in message.flaws or not is_strict(message.flaws):
        return error(None, PARSE_ERROR, "this is no JSON that can be read")
    if message.kind == BATCH:
        return error(None, INVALID_REQUEST, "the batch is empty")
    return error(message.id, INVALID_REQUEST, "this is not a JSON-RPC message")
