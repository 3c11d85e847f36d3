"""No part of the package draws from the generators of Python and NumPy that programs seed."""

import re
from pathlib import Path

import telegrad

ROOT = Path(telegrad.__file__).parent
FOLDERS = (
    "agents amp autograd_dist collective compat core data distributions func launcher nn optim pipelining profiler_dist"
)
SEEDS = {"data/seeding.py"}  # seeds the generators of a loader's worker, as PyTorch does
GLOBAL = re.compile(r"^\s*(import random|from random import)\b|\bnp\.random\.(?!default_rng)[a-z]", re.MULTILINE)


def test_no_module_uses_the_global_generators():
    files = [path for folder in [*FOLDERS.split(), "rpc", "rref"] for path in (ROOT / folder).rglob("*.py")]
    used = {str(path.relative_to(ROOT)) for path in files if GLOBAL.search(path.read_text())}
    assert len(files) > 300 and used == SEEDS
