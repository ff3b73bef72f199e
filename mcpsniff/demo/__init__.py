"""A server and a client for `mcpsniff demo`: the standard library only, revision 2025-11-25, no network."""
