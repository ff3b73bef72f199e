"""Files of other programs that hold MCP over HTTP, as captures: mitmproxy's flow files, and HAR.

`read_exchanges` gives the exchanges of a file, `mcpsniff.importers.records` makes records of them. What is MCP among
them, and what is a secret, is decided by who calls.
"""

import os
from collections.abc import Iterator
from typing import BinaryIO, Final

from mcpsniff.capture.foreign import FLOWS, HAR, LOOK, looks_like
from mcpsniff.capture.labels import shown
from mcpsniff.capture.store import reason
from mcpsniff.errors import CaptureError
from mcpsniff.importers.heard import Account, Heard, ImportFileError

__all__ = ["FLOWS", "HAR", "Account", "Heard", "ImportFileError", "read_exchanges"]

_MARKS: Final = b"\xef\xbb\xbf \t\r\n"


def read_exchanges(path: str, account: Account) -> tuple[str, list[Heard]]:
    """Read a file; return what kind of file it is, and the HTTP exchanges in it.

    Raises CaptureError, with the place in its text, when nothing in it can be read. A place after which reading goes
    on, or before which something could be read, is in ``account.bad`` instead.
    """
    try:
        with open(path, "rb") as file:
            start = file.read(LOOK)
            kind = _kind(start, path)
            exchanges = list(_read(file, kind, account))
    except ImportFileError as error:
        raise CaptureError(f"{shown(path)}, {error}") from None
    except (OSError, ValueError) as error:
        raise CaptureError(f"cannot read {shown(path)}: {reason(error)}") from None
    except MemoryError:
        raise CaptureError(f"{shown(path)} is too large for the memory of this machine") from None
    return kind, exchanges


def _kind(start: bytes, path: str) -> str:
    if start.lstrip(_MARKS).startswith(b"{"):
        if b'"mcpcap"' in start:
            raise CaptureError(f"{shown(path)} is a capture of mcpsniff already: mcpsniff show {shown(path)}")
        return HAR
    if start[:2] in (b"\xff\xfe", b"\xfe\xff") and start.decode("utf-16", "ignore").lstrip().startswith("{"):
        return HAR
    kind = looks_like(start)
    if kind == FLOWS or start[:1].isdigit():
        return FLOWS
    what = f"it looks like {kind}" if start else "it is empty"
    raise CaptureError(f"{shown(path)} is neither a HAR file nor a flow file of mitmproxy: {what}")


def _read(file: BinaryIO, kind: str, account: Account) -> Iterator[Heard]:
    file.seek(0)
    if kind == HAR:
        from mcpsniff.importers.har import read_har

        return read_har(file.read(), account)
    from mcpsniff.importers.flows import read_flows

    return read_flows(file, os.fstat(file.fileno()).st_size, account)
