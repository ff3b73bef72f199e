"""The style sheet and the script of the page, and the policy by which a browser runs these two and nothing else."""

from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Final

SCRIPTS: Final = ("words", "payload", "rows", "filter", "timeline", "keys")
"""The parts of the script, in order; together they are one function."""


@cache
def style() -> str:
    """The style sheet."""
    return _read("style.css")


@cache
def script() -> str:
    """The script, all parts in one scope of their own."""
    parts = "\n".join(_read(f"{name}.js") for name in SCRIPTS)
    return f'"use strict";\n(() => {{\n{parts}}})();\n'


@cache
def policy() -> str:
    """The content security policy: no request of any kind, no code and no style but ours, no address but this page's.

    A policy in the document itself holds for a file that is opened from a disk too (CSP level 3, section 3.3).
    """
    return "; ".join(
        (
            "default-src 'none'",
            f"style-src '{_hash(style())}'",
            f"script-src '{_hash(script())}'",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        )
    )


def _read(name: str) -> str:
    return files(__package__).joinpath("assets", name).read_text(encoding="utf-8").replace("\r\n", "\n")


def _hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
