"""The endpoint of HTTP+SSE (2024-11-05): where the stream tells the client to send its messages."""

from urllib.parse import urljoin

from mcpsniff.protocol.http import origin_form


def names_session(target: str) -> bool:
    """True for a target that looks like the endpoint of HTTP+SSE, whose query names the session."""
    query = target.partition("?")[2].lower()
    return query.startswith(("sessionid=", "session_id=")) or "&sessionid=" in query or "&session_id=" in query


def resolved(base: str, reference: str) -> str:
    """Path and query of an endpoint, however it was spelt: what the client asks for."""
    try:
        found = urljoin("http://server" + origin_form(base), reference)
    except ValueError:
        return reference
    return origin_form(found).partition("#")[0]
