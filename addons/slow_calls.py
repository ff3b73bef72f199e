"""Says which requests took long, and which have had no answer at all.

mcpsniff http --addon slow_calls.py --set slow_ms=200 URL
mcpsniff show --addon slow_calls.py CAPTURE
"""

from mcpsniff import Exchange, Loader, ctx


def load(loader: Loader) -> None:
    """Declare the options."""
    loader.add_option("slow_ms", int, 1000, "Milliseconds from which on a request is slow.")


def mcp_exchange(exchange: Exchange) -> None:
    """A request has found its end."""
    what = f"#{exchange.request} {exchange.method}" + (f" {exchange.target}" if exchange.target else "")
    taken = exchange.latency_us
    if taken is not None and taken >= ctx.options.slow_ms * 1000:
        ctx.log.info(f"slow: {what} took {taken / 1000:,.0f} ms")
    elif exchange.state in ("abandoned", "open"):
        ctx.log.info(f"no answer: {what}")
