"""The hosts that `--only` names: a name or address, one with a port, or ``*.NAME`` for all that is below a name."""

import re
from collections.abc import Sequence
from typing import Final

from mcpsniff.capture.labels import shown
from mcpsniff.errors import UsageError

_HOST: Final = re.compile(r"(\*\.)?(\[[0-9A-Fa-f:.]+\]|[^\s:/@\[\]*?#\\]+)(?::([0-9]{1,5}))?\.?")
_BARE_IPV6: Final = re.compile(r"[0-9A-Fa-f]*:[0-9A-Fa-f:.]*:[0-9A-Fa-f.]*")


class Hosts:
    """Those that ``words`` name; all, if there are none. Raises UsageError for what names no host."""

    def __init__(self, words: Sequence[str]) -> None:
        self.patterns = [_pattern(word) for word in words]
        """Regular expressions for ``host:port``, as mitmproxy's option `allow_hosts` takes them."""
        self._compiled = [re.compile(pattern, re.IGNORECASE) for pattern in self.patterns]

    def has(self, host: str, port: int) -> bool:
        """True if what goes to ``port`` of ``host`` may be looked into."""
        name = f"{host}:{port}"
        return not self._compiled or any(pattern.search(name) for pattern in self._compiled)


def _pattern(word: str) -> str:
    text = f"[{word}]" if _BARE_IPV6.fullmatch(word) else word
    found = _HOST.fullmatch(text)
    if found is None:
        raise UsageError(f"--only takes a host, such as api.example.com, *.example.com or host:8443, not {shown(word)}")
    below, host, port = found.groups()
    name = re.escape(host.strip("[]").rstrip("."))
    before = r"(?:[^:]+\.)" if below else r"\[?"
    return rf"^{before}{name}\.?\]?:{port or '[0-9]+'}$"
