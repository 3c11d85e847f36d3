"""Benchmark of compiled training steps beside PyTorch's eager ones: ``python -m telegrad.benchmarks.captured --peer PYTHON``.

It is measured as the benchmark of local training is (``local.py``).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from .captured_cases import CASES
from .local import compare


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table, and return the exit status: 1 if a measurement of Telegrad failed."""
    return compare("captured", __doc__, CASES, "one compiled step on one thread", arguments)


if __name__ == "__main__":
    sys.exit(main())
