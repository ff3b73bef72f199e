"""As the client: the recorded client side said to a live server, and what comes compared with what was recorded."""
