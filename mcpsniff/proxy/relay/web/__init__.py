"""Edit mode over HTTP/1.1: one message held at a time, in bodies of requests, JSON answers and live event streams."""
