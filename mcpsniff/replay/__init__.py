"""Replay: a saved capture as the server, as the client, and on the screen."""
