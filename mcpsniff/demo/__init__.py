"""Servers and clients for `mcpsniff demo`: the standard library only, nothing of ours, no network.

`server` and `client` speak 2025-11-25 over pipes, `sse_server` and `sse_client` 2024-11-05 over HTTP with SSE.
"""
