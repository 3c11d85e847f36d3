"""``python -m telegrad.testing.simulate``: many runs of the simulator, and a table of what happened in them."""

from __future__ import annotations

import sys

from .simulator.command import main

if __name__ == "__main__":
    sys.exit(main())
