"""Samplers: the order of samples, and their groups for batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Sized
from itertools import islice
from typing import Any, Generic, TypeVar

import numpy as np

from ..core import Generator, as_tensor, default_generator, float64, randint, randperm

T_co = TypeVar("T_co", covariant=True)


class Sampler(Generic[T_co]):
    """Base class of iterables of sample indices, or of lists of them (``torch.utils.data.Sampler``).

    Subclasses define ``__iter__()``.
    """

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError(f"{type(self).__name__} must define __iter__()")


class DrawingSampler(Sampler[int]):
    """Base class of samplers that draw their order with a generator when a pass begins.

    Attributes:
        generator: draws it; ``None`` is the default generator.
    """

    generator: Generator | None

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the generator; nothing if it is the default one."""
        return {} if self.generator is None else {"generator": self.generator.get_state()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a result of ``state_dict()``."""
        if self.generator is not None and "generator" in state_dict:
            self.generator.set_state(state_dict["generator"])


class SequentialSampler(Sampler[int]):
    """Sampler of the indices in order: 0, 1, 2, ... (``torch.utils.data.SequentialSampler``).

    Args:
        data_source: the dataset; only its length is used.
    """

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(DrawingSampler):
    """Sampler of the indices in random order, another one in each pass (``torch.utils.data.RandomSampler``).

    Args:
        data_source: the dataset; only its length is used.
        replacement: whether each index is drawn from all of them, so that some come several times.
        num_samples: number of indices in a pass; ``None`` is the length of the dataset. Without replacement, a larger number
            makes several orders, one after the other.
        generator: draws the random numbers; ``None`` is the default generator.

    Raises:
        ValueError: ``num_samples`` is not positive.
    """

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Generator | None = None,
    ) -> None:
        if num_samples is not None and (not isinstance(num_samples, int) or num_samples <= 0):
            raise ValueError(f"num_samples must be a positive integer, and you gave {num_samples!r}")
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator

    @property
    def num_samples(self) -> int:
        """Return the number of indices in a pass."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        # Drawn when the pass starts: so passes at the same time do not mix their random numbers.
        wanted, have = self.num_samples, len(self.data_source)
        if self.replacement:
            return iter(randint(have, (wanted,), generator=self.generator).tolist() if wanted else [])
        orders = -(-wanted // have) if have else 0
        drawn = [number for _ in range(orders) for number in randperm(have, generator=self.generator).tolist()]
        return iter(drawn[:wanted])

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(DrawingSampler):
    """Sampler of given indices in random order, another one in each pass (``torch.utils.data.SubsetRandomSampler``).

    Args:
        indices: the indices.
        generator: draws the random numbers; ``None`` is the default generator.
    """

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        return (self.indices[place] for place in randperm(len(self.indices), generator=self.generator).tolist())

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(DrawingSampler):
    """Sampler that draws indices with given weights (``torch.utils.data.WeightedRandomSampler``).

    Args:
        weights: the weight of each sample, a vector; they need not add up to 1.
        num_samples: number of indices in a pass.
        replacement: whether an index may come several times.
        generator: draws the random numbers; ``None`` is the default generator.

    Raises:
        ValueError: ``num_samples`` is not a positive integer, ``weights`` are not a vector of numbers that are not negative,
            or without replacement too few of them are positive.
    """

    def __init__(
        self, weights: Any, num_samples: int, replacement: bool = True, generator: Generator | None = None
    ) -> None:
        _check_positive("num_samples", num_samples)
        _check_bool("replacement", replacement)
        self.weights = as_tensor(weights, dtype=float64)
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator
        values = self.weights.numpy(force=True)
        if values.ndim != 1 or not (np.isfinite(values) & (values >= 0)).all() or not values.any():
            raise ValueError(f"weights must be a vector of numbers that are not negative, and you gave {weights!r}")
        if not replacement and np.count_nonzero(values) < num_samples:
            raise ValueError(
                f"without replacement, {num_samples} samples need as many positive weights, and you gave "
                f"{np.count_nonzero(values)}"
            )

    def __iter__(self) -> Iterator[int]:
        values = self.weights.numpy(force=True)
        generator = self.generator or default_generator
        drawn = generator.draw("choice", len(values), self.num_samples, self.replacement, values / values.sum())
        return iter(drawn.tolist())

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Sampler of lists of the indices of another sampler (``torch.utils.data.BatchSampler``).

    Args:
        sampler: an iterable of indices.
        batch_size: length of the lists.
        drop_last: leave out a last list that is shorter.

    Raises:
        ValueError: ``batch_size`` is not a positive integer, or ``drop_last`` is not a bool.
    """

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool) -> None:
        _check_positive("batch_size", batch_size)
        _check_bool("drop_last", drop_last)
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        numbers = iter(self.sampler)
        while batch := list(islice(numbers, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the other sampler; nothing if it has none."""
        state: dict[str, Any] = getattr(self.sampler, "state_dict", dict)()
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a result of ``state_dict()``."""
        if state_dict:
            self.sampler.load_state_dict(state_dict)  # type: ignore[attr-defined]

    def __len__(self) -> int:
        count = len(self.sampler)  # type: ignore[arg-type]
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)


def _check_positive(name: str, value: Any) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        raise ValueError(f"{name} must be a positive integer, and you gave {value!r}")


def _check_bool(name: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise ValueError(f"{name} must be a bool, and you gave {value!r}")
