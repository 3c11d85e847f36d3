"""Program that runs a module of this folder in any interpreter: ``start.py contender torch`` needs PyTorch and no Telegrad.

The repository's root goes to the end of the search path, so that the folder is the package ``benchmarks`` for every
library, and none of its modules hides one of theirs.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path[0:1] = []  # this folder
    sys.path.append(str(Path(__file__).resolve().parents[1]))
    importlib.import_module(f"benchmarks.{sys.argv[1]}").main(sys.argv[2:])
