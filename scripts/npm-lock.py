"""Write the package-lock.json of each folder that has a package.json: exact versions, no registry addresses, no hashes.

The lock then works with whatever registry or mirror the reader's npm is set up for.
"""

import json
import subprocess
from pathlib import Path

TESTS = Path(__file__).parents[1] / "tests"
FOLDERS = [TESTS / "peers", TESTS / "conformance"]
DROPPED = {"resolved", "integrity", "funding", "license", "engines"}


def lock(folder: Path) -> None:
    """Resolve with npm, then keep only what pins a version and shapes the tree."""
    path = folder / "package-lock.json"
    path.unlink(missing_ok=True)
    subprocess.run(
        ["npm", "install", "--package-lock-only", "--no-audit", "--no-fund", "--silent"], cwd=folder, check=True
    )
    content = json.loads(path.read_text(encoding="utf-8"))
    for entry in content["packages"].values():
        for field in DROPPED & entry.keys():
            del entry[field]
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    for each in FOLDERS:
        lock(each)
