"""Random numbers: ``Generator``, and the one that is used when none is named.

The default generator belongs to the process, as in PyTorch; threads that need streams of their own pass their own.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

__all__ = ["Generator", "default_generator", "initial_seed", "manual_seed"]


class Generator:
    """A source of random numbers with a state of its own (``torch.Generator``), on NumPy's PCG64."""

    def __init__(self, device: str = "cpu") -> None:
        self._lock = threading.Lock()
        self._seed = 0
        self.seed()

    def manual_seed(self, seed: int) -> Generator:
        """Start over from ``seed``; equal seeds give equal numbers."""
        self._seed = int(seed)
        # Negative seeds are allowed, as in PyTorch: they count back from 2**64.
        self._numpy = np.random.Generator(np.random.PCG64(self._seed % 2**64))
        return self

    def seed(self) -> int:
        """Start over from a seed of the operating system, and return it."""
        self.manual_seed(int(np.random.SeedSequence().entropy) % 2**63)  # type: ignore[arg-type]
        return self._seed

    def initial_seed(self) -> int:
        """The seed it started from."""
        return self._seed

    def get_state(self) -> dict[str, Any]:
        """Where it is in its stream; give it to ``set_state`` to go back there."""
        return {"seed": self._seed, "stream": self._numpy.bit_generator.state}

    def set_state(self, state: dict[str, Any]) -> None:
        """Go to where ``get_state`` was called."""
        self._seed = state["seed"]
        self._numpy.bit_generator.state = state["stream"]

    def draw(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """What the NumPy generator's ``method`` returns; one draw at a time, so threads may share a generator."""
        with self._lock:
            return getattr(self._numpy, method)(*args, **kwargs)


default_generator = Generator()


def manual_seed(seed: int) -> Generator:
    """Seed the default generator; returns it."""
    return default_generator.manual_seed(seed)


def initial_seed() -> int:
    """The seed that the default generator started from."""
    return default_generator.initial_seed()
