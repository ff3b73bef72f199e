"""The engine on mitmproxy: for upstreams that speak TLS, and for forward proxies.

Nothing on the way of plain HTTP or of pipes imports this package: mitmproxy takes most of a second to load.
"""

from mcpsniff.proxy.mitm.lean import load_named_addons_alone

load_named_addons_alone()
