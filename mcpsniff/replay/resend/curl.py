r"""A recorded request as a command for a shell, made of curl.

There is nothing in it that a terminal would act on, and every captured value is quoted, so that it can be printed,
pasted and run. Secrets are variables that the shell insists on.
"""

import re
from collections.abc import Iterable
from typing import Final

import orjson

from mcpsniff.errors import UsageError
from mcpsniff.protocol.talk import LEGACY
from mcpsniff.replay.resend.holes import Hole, Holed, holes
from mcpsniff.replay.resend.order import Order
from mcpsniff.replay.script import PIPE
from mcpsniff.replay.spelling import ID, token_of
from mcpsniff.transcript.safe import visible, visible_json

ARGUMENT: Final = 60_000
"""Characters of a body that stand on the command line; what is longer stands below it. Linux allows 128 KiB."""

_PLAIN_WORD: Final = re.compile(r"[\w@%+=:,./-]+\Z", re.ASCII)
_BEYOND_ASCII: Final = re.compile(r"[^\x20-\x7e]")
_SPACE: Final = dict.fromkeys("\t\n\r", " ")
_OCTAL: Final = [chr(b) if 0x20 <= b < 0x7F and b not in b"%\\'-" else f"\\{b:03o}" for b in range(256)]
_LITERAL: Final = re.compile(r"[\[\]\\.*^$]")
_WAIT_FOR: Final = (
    'wait_for() { for _ in $(seq 300); do said "$@" > /dev/null && return; sleep 0.1; done;'
    " echo 'nothing came within 30 s' >&2; exit 1; }"
)
_CURL: Final = "curl -sS -N -g --path-as-is"

type Headers = Iterable[tuple[str, Holed]]


def curl(order: Order) -> str:
    """The command, with what is to be known about it in comments. Raises UsageError where curl cannot speak so."""
    if order.kind == PIPE:
        raise UsageError("this was said over pipes, where curl cannot speak: --as python can, or --to URL says where")
    lines = [f"# {visible(line)}" for line in _comments(order)]
    if not order.opening and order.kind != LEGACY:
        call = _call(_request_options(order), order.headers, shell_word(order.url), order.body)
        return "\n".join([*lines, call]) + "\n"
    if order.kind == LEGACY:
        return "\n".join([*lines, "(", *_legacy(order), ")"]) + "\n"
    return "\n".join([*lines, "(", *_session(order), ")"]) + "\n"


def _comments(order: Order) -> Iterable[str]:
    yield order.title
    if names := holes([order.url, *(value for _, value in order.headers)]):
        yield f"set first, since secrets are masked: {', '.join(names)}"


def _request_options(order: Order) -> str:
    if order.method == "HEAD":
        return " -I"
    return "" if order.method == ("POST" if order.body else "GET") else f" -X {shell_word((order.method,))}"


def _call(options: str, headers: Headers, url: str, body: bytes | None, then: str = "") -> str:
    """One curl command on several lines, with what is ``then`` to be done. With a body it is a POST unless told."""
    parts = [f"{_CURL}{options} --url {url}", *(f"-H {_header(name, value)}" for name, value in headers)]
    before = below = ""
    text = json_text(body) if body else ""
    if text is None and body:
        before = f"printf {_octal(body)} |\n"
        parts.append("--data-binary @-")
    elif text and len(text) <= ARGUMENT:
        parts.append(f"--data-raw {_quoted(text)}")
    elif text:
        parts.append("--data-binary @- <<'END_OF_BODY'")
        below = f"\n{text}\nEND_OF_BODY"
    return before + " \\\n  ".join(parts) + then + below


def _header(name: str, value: Holed) -> str:
    """As curl wants it: an empty value is told with a semicolon, or the header would be left out."""
    return shell_word((f"{name};",) if value in ((), ("",)) else (f"{name}: ", *value))


# -- several steps -------------------------------------------------------------------------------------------------


def _session(order: Order) -> list[str]:
    """The handshake, from whose answer the session's id is taken, then the request."""
    first, *others = order.opening
    live = [*order.headers, ("Mcp-Session-Id", (_Shell("session"),)), ("MCP-Protocol-Version", (_Shell("revision"),))]
    return [
        f"url={shell_word(order.url)}",
        "head=$(mktemp) && body=$(mktemp) || exit",
        'trap \'rm -f "$head" "$body"\' EXIT',
        _call(' -f -D "$head" -o "$body"', order.headers, '"$url"', first, " || exit"),
        "session=$(sed -n 's/^[Mm][Cc][Pp]-[Ss]ession-[Ii][Dd]: *//p' \"$head\" | tr -d '\\r')",
        'revision=$(sed -n \'s/.*"protocolVersion" *: *"\\([^"]*\\)".*/\\1/p\' "$body" | head -n 1)',
        *(_call(" -o /dev/null", live, '"$url"', said) for said in others),
        _call("", live, '"$url"', order.body),
    ]


class _Shell(Hole):
    """A variable that the commands have set."""


def _legacy(order: Order) -> list[str]:
    """HTTP+SSE: answers come on a stream that is asked for first, which also names where to POST."""
    posted = [*order.headers, ("Content-Type", ("application/json",))]
    return [
        f"url={shell_word(order.url)}",
        "origin=$(printf %s \"$url\" | sed 's,^\\(https*://[^/]*\\).*,\\1,')",
        "events=$(mktemp) || exit",
        _call("", [*order.headers, ("Accept", ("text/event-stream",))], '"$url"', None, ' > "$events" &'),
        "stream=$!",
        "trap 'kill $stream 2>/dev/null; rm -f \"$events\"' EXIT",
        'said() { grep \'^data:\' "$events" | grep "$1" | grep -E "$2"; }',
        _WAIT_FOR,
        "wait_for . .",
        "endpoint=$(sed -n 's/^data: *//p' \"$events\" | head -n 1 | tr -d '\\r')",
        "case $endpoint in /*) endpoint=$origin$endpoint ;; http*) ;; *) endpoint=${url%/*}/$endpoint ;; esac",
        *_posts([*order.opening, order.body], posted),
    ]


def _posts(messages: list[bytes], headers: Headers) -> Iterable[str]:
    """The POSTs in order; where an answer is due it is waited for, and the last one is shown."""
    for number, message in enumerate(messages):
        yield _call(" -f -o /dev/null", headers, '"$endpoint"', message, " || exit")
        token = token_of(message, ID)
        if token is not None:
            answer = f"{_quoted(f'"id" *: *{_LITERAL.sub(_escaped, token)} *[,}}]')} '\"(result|error)\"'"
            yield f"wait_for {answer}"
            if number == len(messages) - 1:
                yield f"said {answer} | sed 's/^data: *//'"


def _escaped(found: re.Match[str]) -> str:
    return f"\\{found[0]}"


# -- quoting -------------------------------------------------------------------------------------------------------


def shell_word(text: Holed) -> str:
    """A word of a shell's command line; variables must be set, and what is not printable is made by ``printf``."""
    made: list[str] = []
    for part in _whole(text):
        if isinstance(part, _Shell):
            made.append(f'"${part.name}"')
        elif isinstance(part, Hole):
            made.append(f'"${{{part.name}:?is masked in the capture}}"')
        elif _BEYOND_ASCII.search(part):
            made.append(f'"$(printf {_octal(_bytes_of(part))})"')
        else:
            made.append(part if _PLAIN_WORD.match(part) else _quoted(part))
    return "".join(made) or "''"


def _whole(text: Holed) -> list[str | Hole]:
    """The parts, with those that are text and stand side by side as one."""
    made: list[str | Hole] = []
    for part in text:
        before = made[-1] if made else None
        if isinstance(part, str) and isinstance(before, str):
            made[-1] = before + part
        else:
            made.append(part)
    return made


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _bytes_of(text: str) -> bytes:
    """What a text of a head stands for: it was read as Latin-1; what was given on the command line is UTF-8."""
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        return text.encode(errors="surrogateescape")


def _octal(data: bytes) -> str:
    """A format for ``printf`` that writes these bytes."""
    return _quoted("".join(map(_OCTAL.__getitem__, data)))


def json_text(raw: bytes) -> str | None:
    """A text that means the same to a reader of JSON, on one line and safe to print; None where that cannot be."""
    try:
        text = raw.decode().removeprefix("\ufeff")
        if not _BEYOND_ASCII.search(text):
            return text
        orjson.loads(text)
    except ValueError:
        return None
    # In JSON, white space is between tokens only, and what is not ASCII in strings only.
    odd = [one for one in set(text) if not " " <= one <= "~"]
    shown = {one: _SPACE.get(one) or visible_json(one) for one in odd if visible_json(one) != one}
    if not shown:
        return text
    return re.sub(f"[{''.join(map(re.escape, shown))}]", lambda found: shown[found[0]], text)
