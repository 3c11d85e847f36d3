"""Random numbers: ``Generator``, and the one that is used when none is named.

The default generator belongs to the process, as in PyTorch; threads that need streams of their own pass their own. A forked
child goes on where its parent was, so both draw the same numbers: seed the child, if it shall draw others.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from .tensors import Tensor

# In a state: how many bytes the seed, the two numbers of PCG64, and what is left of its last one take.
_FIELDS = (16, 16, 16, 1, 4)

__all__ = [
    "Generator",
    "default_generator",
    "fork_rng",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_rng_state",
]


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

    def get_state(self) -> Tensor:
        """Where it is in its stream, as bytes (a vector of ``uint8``); give it to ``set_state`` to go back there."""
        with self._lock:
            stream: Any = self._numpy.bit_generator.state
        inner = stream["state"]
        numbers = (self._seed, inner["state"], inner["inc"], stream["has_uint32"], stream["uinteger"])
        packed = [(number % 2 ** (8 * size)).to_bytes(size, "little") for number, size in zip(numbers, _FIELDS)]
        return Tensor(np.frombuffer(bytearray(b"".join(packed)), np.uint8))

    def set_state(self, state: Tensor) -> Generator:
        """Go to where ``get_state`` was called; returns this generator.

        Raises:
            TypeError: it is not what ``get_state`` returns.
        """
        if not isinstance(state, Tensor) or state.dtype != np.uint8 or state.shape != (sum(_FIELDS),):
            raise TypeError(f"set_state() takes what get_state() returns, and you gave {state!r}")
        rest = state.numpy().tobytes()
        numbers: list[int] = []
        for size in _FIELDS:
            numbers.append(int.from_bytes(rest[:size], "little", signed=not numbers))  # the seed may be negative
            rest = rest[size:]
        seed, position, increment, has_half, half = numbers
        with self._lock:
            self._seed = seed
            self._numpy.bit_generator.state = {
                "bit_generator": "PCG64",
                "state": {"state": position, "inc": increment},
                "has_uint32": has_half,
                "uinteger": half,
            }
        return self

    def clone_state(self) -> Generator:
        """Another generator, at the same place in the same stream."""
        return Generator().set_state(self.get_state())

    @property
    def device(self) -> str:
        """Where it draws: always ``"cpu"``."""
        return "cpu"

    def __reduce__(self) -> tuple[Any, ...]:
        return _generator_at, (self.get_state(),)

    def draw(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """What the NumPy generator's ``method`` returns; one draw at a time, so threads may share a generator."""
        with self._lock:
            return getattr(self._numpy, method)(*args, **kwargs)


def _generator_at(state: Tensor) -> Generator:
    return Generator().set_state(state)


default_generator = Generator()


def _unlock() -> None:
    # Another thread may have been drawing when this process was forked off, and it does not exist here.
    default_generator._lock = threading.Lock()


os.register_at_fork(after_in_child=_unlock)


def manual_seed(seed: int) -> Generator:
    """Seed the default generator; returns it."""
    return default_generator.manual_seed(seed)


def initial_seed() -> int:
    """The seed that the default generator started from."""
    return default_generator.initial_seed()


def seed() -> int:
    """Start the default generator over from a seed of the operating system, and return it."""
    return default_generator.seed()


def get_rng_state() -> Tensor:
    """Where the default generator is in its stream."""
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Let the default generator go on from a state that ``get_rng_state`` returned."""
    default_generator.set_state(new_state)


@contextmanager
def fork_rng(enabled: bool = True) -> Iterator[None]:
    """A block after which the default generator is where it was before: what is drawn inside changes nothing outside."""
    state = get_rng_state() if enabled else None
    try:
        yield
    finally:
        if state is not None:
            set_rng_state(state)
