"""Events to what people and programs read: rows, text, Markdown, JSON Lines. Nothing here opens a file or a socket."""
