"""Frames to messages, exchanges and conversations: JSON-RPC 2.0 as the revisions of MCP use it."""
