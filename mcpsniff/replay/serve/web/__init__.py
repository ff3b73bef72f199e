"""A capture served over Streamable HTTP and HTTP+SSE."""
