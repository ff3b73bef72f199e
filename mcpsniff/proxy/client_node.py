"""Which Node.js a client runs on, and whether that one heeds proxy settings. Asked only when nothing was seen."""

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from shutil import which
from typing import Final

NODE: Final = "node"
LAUNCHERS: Final = frozenset({"npx", "npm", "pnpm", "pnpx", "yarn", "corepack", "tsx", "ts-node"})
"""Programs that run on, and start, the node beside them or on PATH."""
SECONDS: Final = 3.0
"""How long `node --version` may take."""

_LINE: Final = 256


def node_of(command: Sequence[str], environment: Mapping[str, str]) -> str | None:
    """Return the file of the Node.js that runs ``command`` as far as that can be seen from outside, or None.

    It can be for node itself, for its package runners, and for scripts that name it in their first line (as all
    programs that npm installs do).
    """
    path = environment.get("PATH", os.defpath)
    program = which(command[0], path=path)
    if program is None:
        return None
    name = os.path.basename(command[0])
    if name == NODE:
        return program
    if name == "env" and len(command) > 1:
        return node_of([word for word in command[1:] if "=" not in word] or [NODE], environment)
    if name in LAUNCHERS or b"node" in _first_line(program):
        beside = os.path.join(os.path.dirname(program), NODE)
        return which(NODE, path=path) or (beside if os.access(beside, os.X_OK) else None)
    return None


def version_of(node: str) -> tuple[int, int] | None:
    """Return the major and minor version of a Node.js, or None if it does not tell."""
    try:
        done = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=SECONDS, check=False)
    except (OSError, subprocess.SubprocessError, UnicodeError):
        return None
    found = re.match(r"v(\d+)\.(\d+)\.", done.stdout)
    return (int(found[1]), int(found[2])) if found else None


def heeds_proxies(version: tuple[int, int]) -> bool:
    """Say whether NODE_USE_ENV_PROXY has fetch use a proxy: since 24.0, and in 22 since 22.21 (release notes)."""
    return version >= (24, 0) or (22, 21) <= version < (23, 0)


def _first_line(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            line = file.read(_LINE).partition(b"\n")[0]
    except OSError:
        return b""
    return line if line.startswith(b"#!") else b""
