"""Numbers as people read them: durations, sizes, moments, counts."""

from typing import Final

_SIZES: Final = ("B", "KB", "MB", "GB", "TB", "PB", "EB")


def duration(us: int) -> str:
    """Microseconds as ``85 µs``, ``1.2 ms``, ``340 ms``, ``3.4 s``, ``2 min 5 s`` or ``3 h 2 min``."""
    if us < 0:
        return f"-{duration(-us)}"
    if us < 1000:
        return f"{us} µs"
    if us < 99_950:
        return f"{us / 1000:.1f} ms"
    if us < 999_500:
        return f"{us / 1000:.0f} ms"
    if us < 59_950_000:
        return f"{us / 1_000_000:.1f} s"
    seconds = round(us / 1_000_000)
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60} s"
    return f"{seconds // 3600} h {seconds % 3600 // 60} min"


def moment(us: int) -> str:
    """Microseconds since the start as ``0.001``, ``12.345``, ``1:02.345`` or ``1:01:02.345`` (seconds)."""
    seconds, ms = divmod(us // 1000, 1000)
    if seconds < 60:
        return f"{seconds}.{ms:03}"
    minutes, seconds = divmod(seconds, 60)
    if minutes < 60:
        return f"{minutes}:{seconds:02}.{ms:03}"
    return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}.{ms:03}"


def size(count: int) -> str:
    """Bytes as ``231 B``, ``1.2 KB``, ``340 KB`` (steps of 1,000)."""
    if count < 1000:
        return f"{count} B"
    value = float(count)
    unit = 0
    while value >= 999.5 and unit < len(_SIZES) - 1:
        value /= 1000
        unit += 1
    return f"{value:.1f} {_SIZES[unit]}" if value < 9.95 else f"{value:.0f} {_SIZES[unit]}"


def count(number: int, noun: str, plural: str | None = None) -> str:
    """``1 message``, ``2,000 messages``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
