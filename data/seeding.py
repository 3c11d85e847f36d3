"""Seeds of a pass over a loader."""

from __future__ import annotations

import random

import numpy as np

from ..core import Generator, default_generator, manual_seed


def draw_seed(generator: Generator | None) -> int:
    """Return the seed of a pass. It is drawn with and without workers, so that both leave the generator in the same state."""
    return int((generator or default_generator).draw("integers", 2**63))


def seed_worker(seed: int, number: int) -> None:
    """Seed Telegrad's, Python's and NumPy's generators in worker ``number``: differently for each worker and pass."""
    manual_seed(seed + number)
    random.seed(seed + number)
    np.random.seed(np.random.SeedSequence([seed, number]).generate_state(4))
