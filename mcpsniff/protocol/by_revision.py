"""Flaws that depend on the revision which governs a message: what one revision asks for, another does not know."""

from typing import Final

from mcpsniff.protocol.message import BATCH, ERROR, RESPONSE, Message
from mcpsniff.protocol.reading import Unread
from mcpsniff.protocol.revisions import R_2025_03_26, R_2025_11_25, REVISIONS, is_modern, is_published

REVISION_FLAWS: Final = {
    "batch": "an array, which only 2025-03-26 knows",
    "id-absent": "a response without an id",
    "result-type-missing": "a result without resultType (2026-07-28)",
    "result-type-unknown": "a resultType that neither the core nor the tasks extension defines (2026-07-28)",
    "error-code-retired": "error code -32002 or -32042, which must not be sent any more (2026-07-28)",
    "error-code-reserved": "an error code from the specification's own range that it does not define (2026-07-28)",
}

RESULT_TYPES: Final = ("complete", "input_required", "task")
RETIRED_CODES: Final = (-32002, -32042)
DEFINED_CODES: Final = (-32020, -32021, -32022)
_ERRORS_NEED_AN_ID: Final = REVISIONS[: REVISIONS.index(R_2025_11_25)]


def revision_flaws(message: Message, revision: str) -> tuple[str, ...]:
    """Further flaws of ``message`` under ``revision``; none for a revision that was never published."""
    kind = message.kind
    if kind == RESPONSE:
        return _result_flaws(message) if is_modern(revision) else ()
    if kind == ERROR:
        return _error_flaws(message, revision)
    if kind == BATCH and revision != R_2025_03_26 and is_published(revision):
        return ("batch",)
    return ()


def _result_flaws(message: Message) -> tuple[str, ...]:
    result = message.body.get("result")
    if not isinstance(result, dict) or isinstance(result, Unread):
        return ()
    if "resultType" not in result:
        return ("result-type-missing",)
    return () if result["resultType"] in RESULT_TYPES else ("result-type-unknown",)


def _error_flaws(message: Message, revision: str) -> tuple[str, ...]:
    if "error-id-absent" in message.flaws and revision in _ERRORS_NEED_AN_ID:
        return ("id-absent",)
    code = message.error.get("code")
    if not is_modern(revision) or not isinstance(code, int):
        return ()
    if code in RETIRED_CODES:
        return ("error-code-retired",)
    return ("error-code-reserved",) if -32099 <= code <= -32020 and code not in DEFINED_CODES else ()
