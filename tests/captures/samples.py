"""The sample captures: the script that builds them, as a module."""

import importlib.util
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
FOLDER = REPO / "captures"
SCRIPT = FOLDER / "make.py"

spec = importlib.util.spec_from_file_location("make_captures", SCRIPT)
assert spec is not None
assert spec.loader is not None
make = importlib.util.module_from_spec(spec)
spec.loader.exec_module(make)

NAMES = [sample.name for sample in make.SAMPLES]
