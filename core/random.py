"""Random numbers: ``Generator``, and the default generator.

The default generator belongs to the process, as in PyTorch; threads that need streams of their own pass generators of their
own. A forked child continues from its parent's state, so both draw the same numbers unless the child is seeded.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from .tensors import Tensor

# Sizes in bytes of the parts of a state: the seed, the two numbers of PCG64, and whether and which half of the last random
# number is left.
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
        self.seed()

    def manual_seed(self, seed: int) -> Generator:
        """Restart from ``seed``, and return this generator; equal seeds give equal numbers."""
        self._seed = int(seed)
        self._stream: np.random.Generator | None = None
        return self

    def seed(self) -> int:
        """Restart from a seed of the operating system, and return the seed."""
        self.manual_seed(int.from_bytes(os.urandom(8), "little") >> 1)
        return self._seed

    def initial_seed(self) -> int:
        """Return the seed that it started from."""
        return self._seed

    def get_state(self) -> Tensor:
        """Return the state, a vector of ``uint8``, for ``set_state``."""
        with self._lock:
            stream: Any = self._numpy().bit_generator.state
        inner = stream["state"]
        numbers = (self._seed, inner["state"], inner["inc"], stream["has_uint32"], stream["uinteger"])
        packed = [(number % 2 ** (8 * size)).to_bytes(size, "little") for number, size in zip(numbers, _FIELDS)]
        return Tensor(np.frombuffer(bytearray(b"".join(packed)), np.uint8))

    def set_state(self, state: Tensor) -> Generator:
        """Restore a state, and return this generator.

        Raises:
            TypeError: ``state`` is not a result of ``get_state``.
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
            self._numpy().bit_generator.state = {
                "bit_generator": "PCG64",
                "state": {"state": position, "inc": increment},
                "has_uint32": has_half,
                "uinteger": half,
            }
        return self

    def state_dict(self) -> dict[str, Any]:
        """Return the state by name, for checkpoints."""
        return {"state": self.get_state()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore a result of ``state_dict``."""
        self.set_state(state_dict["state"])

    def clone_state(self) -> Generator:
        """Return another generator in the same state."""
        return Generator().set_state(self.get_state())

    @property
    def device(self) -> str:
        """The device: always ``"cpu"``."""
        return "cpu"

    def __reduce__(self) -> tuple[Any, ...]:
        return _generator_at, (self.get_state(),)

    def draw(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """Return ``method(*args, **kwargs)`` of the NumPy generator, under a lock, so that threads can share a generator."""
        with self._lock:
            return getattr(self._numpy(), method)(*args, **kwargs)

    def _numpy(self) -> np.random.Generator:
        # lock held; made when first used, because numpy.random takes 3 MiB and 10 ms, and most workers draw no numbers
        if self._stream is None:
            # Negative seeds are allowed, as in PyTorch: they count back from 2**64.
            self._stream = np.random.Generator(np.random.PCG64(self._seed % 2**64))
        return self._stream


def _generator_at(state: Tensor) -> Generator:
    return Generator().set_state(state)


default_generator = Generator()


def _unlock() -> None:
    # Another thread may have held the lock when this process was forked, and does not exist here.
    default_generator._lock = threading.Lock()


os.register_at_fork(after_in_child=_unlock)


def manual_seed(seed: int) -> Generator:
    """Seed the default generator, and return it."""
    return default_generator.manual_seed(seed)


def initial_seed() -> int:
    """Return the seed that the default generator started from."""
    return default_generator.initial_seed()


def seed() -> int:
    """Restart the default generator from a seed of the operating system, and return the seed."""
    return default_generator.seed()


def get_rng_state() -> Tensor:
    """Return the state of the default generator, a vector of ``uint8``."""
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Restore a state of the default generator that ``get_rng_state`` returned."""
    default_generator.set_state(new_state)


@contextmanager
def fork_rng(enabled: bool = True) -> Iterator[None]:
    """Return a ``with`` block after which the default generator has the state that it had before."""
    state = get_rng_state() if enabled else None
    try:
        yield
    finally:
        if state is not None:
            set_rng_state(state)
