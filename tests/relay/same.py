"""An addon that edits nothing."""

import mcpsniff


def mcp_edit(message: mcpsniff.Message) -> mcpsniff.Returned:
    return message
