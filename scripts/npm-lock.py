"""Write tests/peers/package-lock.json: exact versions of every package, without registry addresses and hashes.

The lock then works with whatever registry or mirror the reader's npm is set up for.
"""

import json
import subprocess
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "tests" / "peers"
DROPPED = {"resolved", "integrity", "funding", "license", "engines"}


def main() -> None:
    """Resolve with npm, then keep only what pins a version and shapes the tree."""
    lock = FOLDER / "package-lock.json"
    lock.unlink(missing_ok=True)
    subprocess.run(
        ["npm", "install", "--package-lock-only", "--no-audit", "--no-fund", "--silent"], cwd=FOLDER, check=True
    )
    content = json.loads(lock.read_text(encoding="utf-8"))
    for entry in content["packages"].values():
        for field in DROPPED & entry.keys():
            del entry[field]
    lock.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
