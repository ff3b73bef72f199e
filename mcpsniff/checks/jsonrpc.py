"""Checks: jsonrpc."""
