"""Two captures compared: capabilities, definitions, exchanges, latency, findings."""
