"""Samplers: in which order samples are taken, and how they are grouped into batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Sized
from itertools import islice
from typing import Any, Generic, TypeVar

import numpy as np

from ..core import Generator, as_tensor, default_generator, float64, randint, randperm

T_co = TypeVar("T_co", covariant=True)


class Sampler(Generic[T_co]):
    """Gives sample numbers, or lists of them (``torch.utils.data.Sampler``). Subclasses define ``__iter__``."""

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError(f"{type(self).__name__} must define __iter__()")


class SequentialSampler(Sampler[int]):
    """0, 1, 2, ..."""

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """Sample numbers in random order, another one in each pass.

    Args:
        data_source: what is sampled; only its length matters.
        replacement: whether a sample may come several times.
        num_samples: how many a pass gives; at first as many as there are. Without replacement, more of them are several
            orders one after the other.
        generator: where the random numbers come from; at first the default generator.

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
        """How many samples a pass gives."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        # Drawn when the pass starts: passes that run side by side do not take each other's numbers.
        wanted, have = self.num_samples, len(self.data_source)
        if self.replacement:
            return iter(randint(have, (wanted,), generator=self.generator).tolist() if wanted else [])
        orders = -(-wanted // have) if have else 0
        drawn = [number for _ in range(orders) for number in randperm(have, generator=self.generator).tolist()]
        return iter(drawn[:wanted])

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """Given sample numbers in random order, another one in each pass."""

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        return (self.indices[place] for place in randperm(len(self.indices), generator=self.generator).tolist())

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Sample numbers drawn with given weights.

    Args:
        weights: of each sample; they need not add up to 1.
        num_samples: how many a pass gives.
        replacement: whether a sample may come several times.
        generator: where the random numbers come from; at first the default generator.

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
    """Groups the numbers of another sampler into lists of ``batch_size``; ``drop_last`` leaves out an incomplete one.

    Raises:
        ValueError: ``batch_size`` is not a positive integer, or ``drop_last`` is no bool.
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

    def __len__(self) -> int:
        count = len(self.sampler)  # type: ignore[arg-type]
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)


def _check_positive(name: str, value: Any) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        raise ValueError(f"{name} must be a positive integer, and you gave {value!r}")


def _check_bool(name: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise ValueError(f"{name} must be a bool, and you gave {value!r}")
