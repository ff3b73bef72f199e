"""Checks of what servers offer: tools, resources, prompts."""

import hashlib
from typing import Any, Final, NamedTuple, cast

from mcpsniff.checks import ERROR, FEATURES, Verdict, check
from mcpsniff.checks.words import plain, value
from mcpsniff.protocol.conversation import Conversation
from mcpsniff.protocol.message import RESPONSE, Message
from mcpsniff.protocol.revisions import R_2025_11_25, is_modern, is_published, is_within

MOST_FINDINGS: Final = 20
"""Tools of one result that are reported."""
MOST_NODES: Final = 10_000
"""JSON values of one result that are validated; schemas beyond are only looked at from outside."""
KNOWN_LIMIT: Final = 1_000

# A verdict is the same whenever the same schema comes again (lists are asked for often), so it is kept by its digest.
_known: dict[tuple[bytes, bool], str | None] = {}


@check(
    "MCP603",
    "tool-schema",
    on=Message,
    methods=("tools/list",),
    severity=ERROR,
    group=FEATURES,
    spec="server/tools#tool",
)
def tool_schema(message: Message, _: Conversation) -> Verdict:
    """A tool's inputSchema or outputSchema is missing, is no valid JSON Schema, or does not describe an object.

    Every tool has an inputSchema that is a JSON Schema with ``"type": "object"``; an outputSchema, if there is one, has
    to be of type object up to 2025-11-25. Clients that read the list strictly drop all of it for one bad tool, and
    model providers refuse a request that carries a broken schema. Schemas are validated by the dialect that ``$schema``
    names; without one by JSON Schema 2020-12, the default from 2025-11-25 on, and before by whichever of 2020-12,
    draft-07 and draft-04 takes it. Nothing is fetched.

    Fix: For a tool without arguments send ``{"type": "object", "properties": {}}``. Let the SDK derive the schema, or
    validate it by the metaschema in a test.
    """
    tools = message.result.get("tools")
    if message.kind != RESPONSE or not isinstance(tools, list):
        return None
    rules = _Rules(
        output_is_object=is_published(message.revision) and not is_modern(message.revision),
        any_dialect=not is_within(message.revision, R_2025_11_25, None),
    )
    found: list[str] = []
    budget = MOST_NODES
    for position, tool in enumerate(tools):
        if not isinstance(tool, dict):
            found.append(f"entry {position} of tools is {value(tool)}, not an object")
        else:
            name = tool.get("name")
            shown = f"tool {plain(name, 40)}" if isinstance(name, str) else f"entry {position} of tools"
            budget -= _nodes(tool, budget)
            wrong = _tool_fault(tool, rules, closely=budget > 0)
            if wrong is not None:
                found.append(f"{shown} {wrong}")
        if len(found) == MOST_FINDINGS:
            break
    return list(found)


class _Rules(NamedTuple):
    """What the revision asks of schemas."""

    output_is_object: bool
    any_dialect: bool
    """No default dialect is defined."""


def _tool_fault(tool: dict[str, Any], rules: _Rules, *, closely: bool) -> str | None:
    if "inputSchema" not in tool:
        return "has no inputSchema"
    wrong = _schema_fault(tool["inputSchema"], rules, must_be_object=True, closely=closely)
    if wrong is not None:
        return f"has an inputSchema that {wrong}"
    if "outputSchema" in tool:
        wrong = _schema_fault(tool["outputSchema"], rules, must_be_object=rules.output_is_object, closely=closely)
    return None if wrong is None else f"has an outputSchema that {wrong}"


def _schema_fault(schema: Any, rules: _Rules, *, must_be_object: bool, closely: bool) -> str | None:
    if not isinstance(schema, dict):
        return f"is {value(schema)}, not an object"
    if must_be_object and schema.get("type") != "object":
        return f'is of type {value(schema["type"])}, not "object"' if "type" in schema else 'has no "type": "object"'
    wrong = _not_a_schema(schema, any_dialect=rules.any_dialect) if closely else None
    return None if wrong is None else f"is not valid JSON Schema: {wrong}"


def _not_a_schema(schema: dict[str, Any], *, any_dialect: bool) -> str | None:
    """Why ``schema`` is not valid by its metaschema; None if it is, or if that cannot be told."""
    import orjson

    try:
        digest = hashlib.blake2b(orjson.dumps(schema, option=orjson.OPT_SORT_KEYS), digest_size=16).digest()
    except (TypeError, orjson.JSONEncodeError):
        return None  # numbers beyond 64 bits, lone surrogates: other checks speak of them
    key = digest, any_dialect
    if key not in _known:
        if len(_known) >= KNOWN_LIMIT:
            _known.clear()
        _known[key] = _validate(schema, any_dialect=any_dialect)
    return _known[key]


def _validate(schema: dict[str, Any], *, any_dialect: bool) -> str | None:
    from jsonschema import Draft4Validator, Draft7Validator, Draft202012Validator
    from jsonschema.validators import validator_for

    dialect = schema.get("$schema", "")
    candidates: list[Any] = [Draft202012Validator, *((Draft7Validator, Draft4Validator) if any_dialect else ())]
    if isinstance(dialect, str) and dialect:
        try:
            named = validator_for(schema, default=cast("Any", None))
        except ValueError:
            named = None  # no URI at all
        if named is None:
            return None  # a dialect of its own; what it allows is not known
        candidates = [named]
    wrong = [_complaint(validator, schema) for validator in candidates]
    return wrong[0] if all(wrong) else None


def _complaint(validator: Any, schema: dict[str, Any]) -> str | None:
    """What the metaschema of one dialect finds wrong with ``schema``."""
    from jsonschema import FormatChecker
    from jsonschema.exceptions import SchemaError

    try:
        # Without formats: patterns are ECMA-262, and Python's own engine would refuse some of them.
        validator.check_schema(schema, format_checker=FormatChecker(formats=()))
    except SchemaError as error:
        return f"{plain(error.json_path, 60)}: {plain(error.message, 80)}"
    except (RecursionError, ValueError):
        return None
    return None


def _nodes(thing: Any, most: int) -> int:
    """How many values a JSON value consists of, counted up to about ``most``."""
    count, open_values = 0, [thing]
    while open_values and count < most:
        top = open_values.pop()
        count += 1
        if isinstance(top, dict):
            open_values.extend(top.values())
        elif isinstance(top, list):
            open_values.extend(top)
    return count
