"""Print the requirements of a dependency group of pyproject.toml, for a pip older than 25.1, which lacks --group."""

import sys
import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
print("\n".join(project["dependency-groups"][sys.argv[1]]))
