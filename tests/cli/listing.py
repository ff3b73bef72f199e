"""Folders of captures for the tests of list, prune and completion."""

import os
import time
from pathlib import Path
from typing import Any

from tests.capture.capture_files import save
from tests.transcript.golden import SESSION

DAY = 86400.0


def saved(
    folder: Path, name: str, *, days: float = 0.0, number: int = 1, records: Any = SESSION, **header: Any
) -> Path:
    """A capture that began, and was written to last, so many days ago."""
    folder.mkdir(exist_ok=True)
    began = time.time() - days * DAY
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(began))
    file = f"{name}-{stamp.replace('-', '').replace(':', '')}.000Z-{number}.mcpcap"
    path = save(folder, file, records, **{"label": name, "started": f"{stamp}.000000Z", "transport": "stdio", **header})
    os.utime(path, (began, began))
    return path
