"""Shows MCP in mitmproxy's and mitmweb's own pages: bodies and event streams as annotated messages.

    mitmweb -s mcp_view.py

Needs mcpsniff in the Python that runs mitmproxy (pip install mcpsniff; pipx inject mitmproxy mcpsniff; uv tool install
mitmproxy --with mcpsniff).
"""

from __future__ import annotations

import logging
import sys

from mitmproxy import contentviews, http

lacks = ""
try:
    from mcpsniff.transcript.lone import Half, annotated, is_mcp
except ModuleNotFoundError as error:  # mitmproxy would show a traceback
    lacks = (error.name or "mcpsniff").partition(".")[0]

PRIORITY = 2.0
"""Above that of mitmproxy's view of JSON, which is 1."""


class MCP(contentviews.Contentview):
    """MCP as annotated messages, in YAML whose comments are what mcpsniff says of them."""

    syntax_highlight = "yaml"

    def prettify(self, data: bytes, metadata: contentviews.Metadata) -> str:
        """Return the messages in ``data``. Raises ValueError if there are none."""
        flow, message = metadata.flow, metadata.http_message
        if not isinstance(flow, http.HTTPFlow) or message is None:
            raise ValueError("this view is for HTTP")
        start = f"{flow.request.method} {flow.request.path} {flow.request.http_version}"
        if message is flow.response:
            asked = _half(start, flow.request, _content(flow.request))
            status = f"{flow.response.http_version} {flow.response.status_code} {flow.response.reason}"
            lines = annotated(asked, _half(status, flow.response, data))
        else:
            lines = annotated(_half(start, flow.request, data))
        text = "\n".join(lines)
        if not text:
            raise ValueError("no MCP in it")
        return text

    def render_priority(self, data: bytes, metadata: contentviews.Metadata) -> float:
        """Return `PRIORITY` for MCP, less than nothing for anything else."""
        message = metadata.http_message
        if not data or message is None:
            return -1
        return PRIORITY if is_mcp(message.headers.get("content-type", ""), data) else -1


def _content(message: http.Message) -> bytes | None:
    """Return the body without its coding; None if it is not there, or cannot be read."""
    try:
        return message.content
    except ValueError:
        return None


def _half(start: str, message: http.Message, body: bytes | None) -> Half:
    pairs = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in message.headers.fields]
    return Half(start, tuple(pair for pair in pairs if pair[0].lower() != "content-encoding"), body)


if lacks:
    logging.getLogger("mcpsniff").error(
        "mcp_view.py needs %s in the Python that runs mitmproxy (%s): `pip install mcpsniff` there, "
        "`pipx inject mitmproxy mcpsniff`, or `uv tool install mitmproxy --with mcpsniff`",
        lacks,
        sys.executable,
    )
else:
    contentviews.add(MCP)
