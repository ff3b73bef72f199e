"""First lines of HTTP messages, as captures have them: spelled as they came."""

from mitmproxy.http import Request, Response


def request_line(request: Request) -> str:
    """That of a request."""
    raw = request.data
    target = raw.path
    if raw.authority and not request.is_http2 and not request.is_http3:
        target = (
            raw.authority if raw.method.upper() == b"CONNECT" else b"%s://%s%s" % (raw.scheme, raw.authority, raw.path)
        )
    return b" ".join((raw.method, target, raw.http_version)).decode("latin-1")


def status_line(response: Response) -> str:
    """That of a response."""
    raw = response.data
    return (b"%s %d %s" % (raw.http_version, raw.status_code, raw.reason)).decode("latin-1").rstrip(" ")
