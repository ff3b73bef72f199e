"""mcpsniff: an intercepting proxy and protocol analyser for the Model Context Protocol."""

__version__ = "0.1.0"
