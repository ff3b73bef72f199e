"""Captures in tests: servers that serve one, and recorders of a session. `mcpsniff.pytest` makes fixtures of them."""
