"""Counts what was asked, method by method and tool by tool, and prints a table at the end.

mcpsniff stdio --addon count_methods.py -- SERVER
mcpsniff show --addon count_methods.py CAPTURE
"""

from collections import Counter

from mcpsniff import Exchange, Message, ctx

asked: Counter[tuple[str, str]] = Counter()
failed: Counter[tuple[str, str]] = Counter()
told: Counter[str] = Counter()


def mcp_notification(message: Message) -> None:
    """Count what nobody answers."""
    told[message.method or ""] += 1


def mcp_exchange(exchange: Exchange) -> None:
    """Count a request, and whether it failed."""
    key = exchange.method, exchange.target or ""
    asked[key] += 1
    failed[key] += exchange.state != "answered"


def done() -> None:
    """Print what was counted, the most frequent first."""
    for (method, target), count in asked.most_common():
        errors = failed[method, target]
        ctx.log.info(f"{count:6,}  {method} {target}".rstrip() + (f"  ({errors:,} failed)" if errors else ""))
    for method, count in told.most_common():
        ctx.log.info(f"{count:6,}  {method}")
