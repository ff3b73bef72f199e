"""Checks of what the head of a request says: media types, protocol version, and what it repeats of the body."""

from collections import Counter
from typing import Final

from mcpsniff.checks import CLIENT, ERROR, HTTP, NOTE, SERVER, WARNING, Hit, Verdict, check
from mcpsniff.checks.over_http import (
    JSON,
    METADATA,
    SENDING,
    accepted,
    covers,
    is_modern,
    is_streamable,
    request_line,
)
from mcpsniff.checks.words import listed, plain, quoted, value
from mcpsniff.protocol.conversation import Conversation
from mcpsniff.protocol.exchange import target_of
from mcpsniff.protocol.http import EVENT_STREAM, Http, HttpExchange, media_type
from mcpsniff.protocol.message import REQUEST, RESPONSE, Message
from mcpsniff.protocol.param_headers import PREFIX, argument, decoded, says
from mcpsniff.protocol.revisions import (
    PROTOCOL_VERSION_KEY,
    R_2025_03_26,
    R_2025_06_18,
    R_2026_07_28,
)
from mcpsniff.protocol.revisions import is_modern as is_modern_revision

VERSIONS: Final = "basic/transports#protocol-version-header"
NAMED: Final = frozenset(
    {"tools/call", "prompts/get", "resources/read", "tasks/get", "tasks/update", "tasks/cancel"},
)
"""The methods whose target Mcp-Name repeats (tasks/*: by the tasks extension)."""
ROUTING: Final = frozenset({"mcp-method", "mcp-name", "mcp-protocol-version", "mcp-session-id"})


@check(
    "MCP501",
    "http-accept",
    on=Http,
    severity=ERROR,
    group=HTTP,
    since=R_2025_03_26,
    spec=SENDING,
    blame=CLIENT,
    once=True,
)
def http_accept(event: Http, _: Conversation) -> Verdict:
    """Accept does not list what the server may answer: JSON and event streams to a POST, event streams to a GET.

    The server decides whether it answers with one JSON object or with a stream, so a client has to name both. The SDK
    servers answer 406 otherwise, TypeScript ones also to ``*/*``, which is a note only. Told once per conversation.

    Fix: Send ``Accept: application/json, text/event-stream`` with every POST and ``text/event-stream`` with GET.
    """
    http = event.exchange
    wanted = {"POST": [JSON, EVENT_STREAM] if http.asked.messages else [], "GET": [EVENT_STREAM]}.get(http.method, [])
    if http.request is None or not is_streamable(http):
        return None
    ranges = accepted(http.request.all("accept"))
    missing = [kind for kind in wanted if kind not in ranges]
    if not missing:
        return None
    if all(covers(ranges, kind) for kind in missing):
        return Hit(f"{request_line(http)} accepts {listed(missing)} by a wildcard, which some servers refuse", NOTE)
    return f"{request_line(http)} does not accept {listed(missing)}"


@check(
    "MCP502",
    "http-request-type",
    on=Http,
    severity=WARNING,
    group=HTTP,
    since=R_2025_03_26,
    spec=SENDING,
    blame=CLIENT,
    once=True,
)
def http_request_type(event: Http, _: Conversation) -> Verdict:
    """The body of a POST is a message, and its Content-Type does not say that it is JSON.

    Python SDK servers answer 400, TypeScript ones 415. A page in a browser can send ``text/plain`` anywhere without
    asking, so servers that take it are open to other sites. Told once per conversation.

    Fix: Send ``Content-Type: application/json``.
    """
    http = event.exchange
    kind = media_type(http.asks("content-type"))
    if http.method != "POST" or not http.asked.messages or kind == JSON or not is_streamable(http):
        return None
    said = f"has the Content-Type {quoted(kind, 40)}" if kind else "has no Content-Type"
    return f"{request_line(http)} carries a message and {said}"


@check(
    "MCP508",
    "http-version-missing",
    on=Http,
    severity=ERROR,
    group=HTTP,
    since=R_2025_06_18,
    spec=VERSIONS,
    blame=CLIENT,
    once=True,
)
def http_version_missing(event: Http, conversation: Conversation) -> Verdict:
    """A request has no MCP-Protocol-Version header.

    From 2025-06-18 on every request after ``initialize`` names the version that was agreed on, GET and DELETE too; in
    2026-07-28 every POST does. Without it servers assume 2025-03-26, or answer 400. Told once per conversation.

    Fix: Keep the version of the result of ``initialize`` and send it with every request.
    """
    http = event.exchange
    if http.request is None or http.version is not None or http.opens or not is_streamable(http):
        return None
    if is_modern(http):
        return f"{request_line(http)} has no MCP-Protocol-Version" if http.method == "POST" else None
    agreed_at = conversation.agreed_at
    if http.method not in ("POST", "GET", "DELETE") or agreed_at is None or http.t_request < agreed_at:
        return None
    return f"{request_line(http)} has no MCP-Protocol-Version, and {conversation.revision} was agreed on"


@check(
    "MCP509",
    "http-version-differs",
    on=Message,
    http="c2s",
    severity=ERROR,
    group=HTTP,
    since=R_2025_06_18,
    spec=VERSIONS,
)
def http_version_differs(message: Message, conversation: Conversation) -> Verdict:
    """MCP-Protocol-Version names another version than the one that governs the request.

    In 2026-07-28 it repeats the version in ``_meta``, and servers have to refuse a difference (an error). Before, it
    should be the version agreed on in ``initialize`` (a warning): a server that goes by the header speaks another one.

    Fix: Take header and body from one variable; after ``initialize`` send the version of its result.
    """
    http = message.http
    if http is None or http.version is None or message.batch is not None or not is_streamable(http):
        return None
    if is_modern_revision(message.revision):
        named = message.meta.get(PROTOCOL_VERSION_KEY)
        if not isinstance(named, str) or named == http.version:
            return None
        return f"MCP-Protocol-Version is {quoted(http.version, 40)} and the version in _meta is {value(named)}"
    if message.method == "initialize" or not conversation.initialize_answered or http.version == conversation.revision:
        return None
    text = f"MCP-Protocol-Version is {quoted(http.version, 40)}, and {conversation.revision} was agreed on"
    return Hit(text, WARNING)


@check(
    "MCP510",
    "http-method-header",
    on=Message,
    http="c2s",
    severity=ERROR,
    group=HTTP,
    since=R_2026_07_28,
    spec=METADATA,
)
def http_method_header(message: Message, _: Conversation) -> Verdict:
    """Mcp-Method is missing or is not the method of the request.

    What stands between client and server routes by this header without reading the body, so servers have to refuse a
    request whose header says something else (400 and -32020). Names of methods are case-sensitive.

    Fix: Set the header from the message that is sent, where it is sent.
    """
    http = message.http
    if http is None or message.kind != REQUEST or message.batch is not None or not is_streamable(http):
        return None
    return method_fault(http, message.method or "")


def method_fault(http: HttpExchange, method: str) -> str | None:
    """What is wrong with Mcp-Method on a request of ``method``."""
    header = http.asks("mcp-method")
    if header is None:
        return f"{plain(method, 40)} is sent without the header Mcp-Method"
    return None if header == method else f"Mcp-Method is {quoted(header, 40)} and the method is {quoted(method, 40)}"


@check(
    "MCP511",
    "http-name-header",
    on=Message,
    http="c2s",
    severity=ERROR,
    group=HTTP,
    since=R_2026_07_28,
    spec=METADATA,
)
def http_name_header(message: Message, _: Conversation) -> Verdict:
    """Mcp-Name is missing or is not the name, URI or task id in the request.

    It is needed on tools/call, prompts/get (name), resources/read (uri) and tasks/* (taskId). Servers have to refuse
    a request in which it differs. A value that is not plain ASCII is sent as ``=?base64?…?=``.

    Fix: Set the header from the message that is sent; encode what is not printable ASCII, or has white space around it.
    """
    http = message.http
    if http is None or message.kind != REQUEST or message.batch is not None or not is_streamable(http):
        return None
    return name_fault(http, message.method or "", target_of(message))


def name_fault(http: HttpExchange, method: str, target: str | None) -> str | None:
    """What is wrong with Mcp-Name on a request of ``method`` about ``target``."""
    if method not in NAMED or target is None:
        return None
    header = http.asks("mcp-name")
    if header is None:
        return f"{method} of {quoted(target, 40)} is sent without the header Mcp-Name"
    if says(header, target):
        return None
    said = decoded(header)
    if said is None:
        return f"Mcp-Name is {quoted(header, 40)}, whose Base64 cannot be read"
    return f"Mcp-Name is {quoted(said, 40)} and the request is about {quoted(target, 40)}"


@check(
    "MCP512",
    "http-param-header",
    on=Message,
    http="c2s",
    severity=ERROR,
    group=HTTP,
    since=R_2026_07_28,
    spec=METADATA,
)
def http_param_header(message: Message, conversation: Conversation) -> Verdict:
    """A header Mcp-Param-… that the tool asks for is missing, differs from the argument, or is one too many.

    A tool's inputSchema may mark arguments by ``x-mcp-header``; clients repeat those in headers, and leave out what is
    null or not given. Servers have to refuse a difference. A header that is missing is a warning: the client may have
    read the list of tools before the schema changed.

    Fix: Read the tool's schema from the latest tools/list and set each header from the arguments that are sent.
    """
    http = message.http
    if http is None or http.request is None or message.kind != REQUEST or message.method != "tools/call":
        return None
    if not is_streamable(http):
        return None
    found: list[str | Hit] = []
    name = message.params.get("name")
    for header in conversation.param_headers.get(name, ()) if isinstance(name, str) else ():
        given, said = argument(message.params.get("arguments"), header.path), http.asks(header.name)
        shown = PREFIX.title() + plain(header.name.removeprefix(PREFIX), 30)
        where = plain(".".join(header.path), 40)
        if given is None and said is not None:
            found.append(f"{shown} is {quoted(said, 40)} and the argument {where} is not given")
        elif given is not None and said is None and isinstance(given, str | int):
            found.append(Hit(f"the argument {where} is given and the header {shown} is missing", WARNING))
        elif given is not None and said is not None and not says(said, given):
            found.append(f"{shown} is {quoted(said, 40)} and the argument {where} is {value(given)}")
    return found


@check(
    "MCP513",
    "http-header-duplicate",
    on=Http,
    severity=WARNING,
    group=HTTP,
    spec=METADATA,
    blame=CLIENT,
)
def http_header_duplicate(event: Http, _: Conversation) -> Verdict:
    """A header of MCP that stands for one value is there more than once.

    What is between client and server may go by the first and the server by the last, or the two are joined with a
    comma and match nothing. Python SDK servers refuse such a request.

    Fix: Set these headers instead of adding them; look for a second layer that adds its own.
    """
    head = event.exchange.request
    if head is None:
        return None
    names = Counter(name.lower() for name, _ in head.headers)
    twice = [name for name, count in names.items() if count > 1 and (name in ROUTING or name.startswith(PREFIX))]
    if not twice:
        return None
    return f"{request_line(event.exchange)} has more than one {listed([plain(name, 40) for name in twice])}"


@check(
    "MCP514",
    "http-header-mismatch-served",
    on=Message,
    http="s2c",
    severity=ERROR,
    group=HTTP,
    since=R_2026_07_28,
    spec="basic/transports/streamable-http#server-validation",
    blame=SERVER,
)
def http_header_mismatch_served(message: Message, _: Conversation) -> Verdict:
    """The server answers a request with a result although its headers do not say what its body says.

    A gateway that allows or bills by the header can be got round if the server goes by the body. Servers that read
    bodies have to answer 400 with -32020. What is wrong with the headers is told at the request.

    Fix: Compare MCP-Protocol-Version, Mcp-Method and Mcp-Name with the body before anything is done.
    """
    http, asked = message.http, message.link
    if message.kind != RESPONSE or http is None or asked is None or http.number != asked.http or http.request is None:
        return None
    if not is_modern_revision(asked.revision) or asked.response != message.n:
        return None
    if http.version is None:
        wrong: str | None = "MCP-Protocol-Version is missing"
    elif http.version != asked.revision:
        wrong = f"MCP-Protocol-Version is {quoted(http.version, 40)}"
    else:
        wrong = method_fault(http, asked.method) or name_fault(http, asked.method, asked.target)
    return None if wrong is None else f"answered with a result, although {wrong}"
