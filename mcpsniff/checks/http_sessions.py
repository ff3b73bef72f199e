"""Checks of sessions over HTTP: who names which session, and whether it is a good name."""

from typing import Final

from mcpsniff.checks import CLIENT, ERROR, HTTP, INFO, SERVER, WARNING, Hit, Verdict, check
from mcpsniff.checks.over_http import SESSIONS, is_modern, is_served, request_line
from mcpsniff.checks.words import duration, quoted
from mcpsniff.protocol.conversation import CROSSING_US, Conversation
from mcpsniff.protocol.http import Http
from mcpsniff.protocol.revisions import R_2025_03_26, R_2025_11_25, R_2026_07_28

SHORT: Final = 11
"""Characters of a session id below which it cannot have 64 random bits (11 of Base64)."""
LONG_NUMBER: Final = 20
"""Digits of a number of 64 bits."""


@check(
    "MCP516",
    "session-missing",
    on=Http,
    when=("session-missing",),
    severity=WARNING,
    group=HTTP,
    since=R_2025_03_26,
    until=R_2025_11_25,
    spec=SESSIONS,
    blame=CLIENT,
)
def session_missing(event: Http, _: Conversation) -> Verdict:
    """A request names no session, although the server has given one.

    Every request after ``initialize`` repeats the Mcp-Session-Id of its response. Without it servers answer 400 (then
    this is an error), or serve the request outside of the session. Which session is meant is a guess of mcpsniff: the
    one of this connection, or the latest one.

    Fix: Keep the header of the response to ``initialize`` and send it with every later request.
    """
    http = event.exchange
    severity = ERROR if http.status == 400 and http.by is None else None
    return Hit(f"{request_line(http)} names no session, and the server has given one", severity)


@check(
    "MCP517",
    "session-unknown",
    on=Http,
    when=("session-ended",),
    severity=ERROR,
    group=HTTP,
    since=R_2025_03_26,
    until=R_2025_11_25,
    spec=SESSIONS,
    once=True,
)
def session_unknown(event: Http, _: Conversation) -> Verdict:
    """A session that has ended is used: the client goes on with it, or the server serves it.

    After DELETE, or after the server has answered 404, the session is over. The server has to answer 404, and the
    client to begin anew with ``initialize`` and without the old id; one that does not fails for ever after a restart
    of the server. Requests within 250 ms of the end are let pass. Told once per session.

    Fix: On 404 forget the session id, initialize again, and repeat the call. Servers keep no session after DELETE.
    """
    http, fact = event.exchange, next((fact for fact in event.facts if fact.name == "session-ended"), None)
    if fact is None or fact.t is None or http.method == "DELETE":
        return None
    since = http.t_request - fact.t
    if since <= CROSSING_US:
        return None
    session = quoted(http.session_id or "", 20)
    found: list[str | Hit] = []
    if http.opens:
        found.append(Hit(f"initialize names session {session}, which has ended, and has to name none", blame=CLIENT))
    else:
        text = f"{request_line(http)} names session {session}, which ended {duration(since)} before"
        found.append(Hit(text, blame=CLIENT))
    if is_served(http) and not http.opens:
        found.append(Hit(f"session {session} has ended and is served with {http.status} instead of 404", blame=SERVER))
    return found


@check(
    "MCP518",
    "session-chars",
    on=Http,
    severity=ERROR,
    group=HTTP,
    spec=SESSIONS,
    blame=SERVER,
)
def session_chars(event: Http, _: Conversation) -> Verdict:
    """A session id holds something else than visible ASCII characters, or nothing.

    Allowed are 0x21 to 0x7E. Blanks at the ends are cut off on the way and others may be folded, so the id that comes
    back is another one; many HTTP libraries refuse to send the rest.

    Fix: Use a UUID, hex digits or Base64.
    """
    http = event.exchange
    session = http.session_given
    if session is None or http.by is not None or (session and all("!" <= character <= "~" for character in session)):
        return None
    return f"Mcp-Session-Id is {quoted(session, 40)}" if session else "Mcp-Session-Id is empty"


@check(
    "MCP519",
    "session-changed",
    on=Http,
    when=("session-changed",),
    severity=INFO,
    group=HTTP,
    since=R_2025_03_26,
    until=R_2025_11_25,
    spec=SESSIONS,
    blame=SERVER,
)
def session_changed(event: Http, _: Conversation) -> Verdict:
    """A response names another session than the one of the request.

    On a refusal it means nothing: Python SDK servers send a fresh id, which nobody will know, with every 400. On a
    success it is a warning, since the TypeScript SDK clients take it over and lose the session they had.

    Fix: Send Mcp-Session-Id with the response to ``initialize`` only.
    """
    http = event.exchange
    given = quoted(http.session_given or "", 20)
    if not http.is_refused:
        return Hit(f"the response to {request_line(http)} names another session, {given}", WARNING)
    return f"{http.status} names a session, {given}, that nobody will know"


@check(
    "MCP520",
    "session-in-26",
    on=Http,
    severity=INFO,
    group=HTTP,
    since=R_2026_07_28,
    spec="basic/transports/streamable-http#earlier-streamable-http-revisions",
    once=True,
)
def session_in_26(event: Http, _: Conversation) -> Verdict:
    """Mcp-Session-Id is sent in 2026-07-28, which has no sessions.

    Each request stands for itself; servers ignore the header and give none. A client that waits for one waits in vain,
    a server that needs one is of an earlier revision. Told once.

    Fix: Leave the header out of requests and responses of 2026-07-28.
    """
    http = event.exchange
    if not is_modern(http):
        return None
    if http.session_id is not None:
        return Hit(f"{request_line(http)} names a session, which 2026-07-28 does not have", blame=CLIENT)
    if http.session_given is not None and http.by is None:
        return Hit(
            f"the response to {request_line(http)} gives a session, which 2026-07-28 does not have", blame=SERVER
        )
    return None


@check(
    "MCP521",
    "session-weak",
    on=Http,
    severity=WARNING,
    group=HTTP,
    spec=SESSIONS,
    blame=SERVER,
)
def session_weak(event: Http, _: Conversation) -> Verdict:
    """A session id can be guessed: it is short, or a number.

    Whoever knows the id of a session can speak in it where nothing else is asked for, so it should be random and
    unique (a UUID, a hash). Here it has fewer than 11 characters, or is a decimal number of less than 64 bits.

    Fix: Take 128 random bits from a cryptographic source, as in ``uuid4()``.
    """
    http = event.exchange
    session = http.session_given
    if not http.opens or not session or not is_served(http):
        return None
    if session.isdecimal() and len(session) < LONG_NUMBER:
        return f"the session id {quoted(session, 40)} is a number"
    return f"the session id {quoted(session, 40)} has {len(session)} characters" if len(session) < SHORT else None
