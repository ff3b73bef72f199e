"""Edit mode: what stands on the wire when messages may be changed. Off, and not loaded, unless it is asked for.

A thread per direction holds one frame at a time and forwards its very bytes, or what the editor has put in its place
(`mcpsniff.hooks.editor`), after a record of what it does.
"""
