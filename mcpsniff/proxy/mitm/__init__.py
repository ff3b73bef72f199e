"""The engine on mitmproxy: for upstreams that speak TLS, and for forward proxies.

Nothing on the way of plain HTTP or of pipes imports this package: mitmproxy takes a second to load.
"""
