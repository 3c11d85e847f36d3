"""Datasets made of others: parts, chains, stacks and random splits."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, TypeVar

from ..core import Generator, randperm
from .dataset import Dataset, IterableDataset, length_of

T_co = TypeVar("T_co", covariant=True)


class Subset(Dataset[T_co]):
    """The samples of another dataset at ``indices``."""

    def __init__(self, dataset: Dataset[T_co], indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index: Any) -> T_co:
        if isinstance(index, list):
            return self.dataset[[self.indices[each] for each in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices: Sequence[int]) -> Sequence[T_co]:
        """The samples of a batch, all at once if the dataset can."""
        if type(self).__getitem__ is not Subset.__getitem__:
            return [self[index] for index in indices]
        return _samples(self.dataset, [self.indices[index] for index in indices])

    def __len__(self) -> int:
        return len(self.indices)


class ConcatDataset(Dataset[T_co]):
    """The samples of several datasets, one dataset after the other.

    Raises:
        TypeError: one of them is an ``IterableDataset``.
        ValueError: there are none.
    """

    def __init__(self, datasets: Iterable[Dataset[T_co]]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise ValueError("ConcatDataset needs at least one dataset")
        if any(isinstance(dataset, IterableDataset) for dataset in self.datasets):
            raise TypeError("ConcatDataset cannot hold an IterableDataset, which has no sample numbers")
        self.cumulative_sizes = list(accumulate(map(length_of, self.datasets)))

    def __getitem__(self, index: int) -> T_co:
        number = index + len(self) if index < 0 else index
        if not 0 <= number < len(self):
            raise IndexError(f"sample {index} is out of range: there are {len(self)}")
        which = bisect_right(self.cumulative_sizes, number)
        return self.datasets[which][number - (self.cumulative_sizes[which - 1] if which else 0)]

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]


class ChainDataset(IterableDataset[T_co]):
    """The samples of several iterable datasets, one dataset after the other.

    Raises:
        TypeError: one of them is not an ``IterableDataset`` (told when it is iterated).
    """

    def __init__(self, datasets: Iterable[Dataset[T_co]]) -> None:
        self.datasets = datasets

    def __iter__(self) -> Iterator[T_co]:
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise TypeError(f"ChainDataset chains IterableDatasets, and one is a {type(dataset).__name__}")
            yield from dataset

    def __len__(self) -> int:
        return sum(map(length_of, self.datasets))


class StackDataset(Dataset[Any]):
    """The samples of several datasets side by side: tuples of them, or dictionaries if they were given by name.

    Raises:
        ValueError: none were given, some by position and some by name, or of unequal lengths.
    """

    def __init__(self, *args: Dataset[Any], **kwargs: Dataset[Any]) -> None:
        if bool(args) == bool(kwargs):
            raise ValueError("StackDataset needs datasets, either all by position or all by name")
        self.datasets: Any = args or kwargs
        lengths = [length_of(dataset) for dataset in args or kwargs.values()]
        if len(set(lengths)) > 1:
            raise ValueError(f"StackDataset needs datasets of one length, and you gave lengths {lengths}")
        self._length = lengths[0]

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {name: dataset[index] for name, dataset in self.datasets.items()}
        return tuple(dataset[index] for dataset in self.datasets)

    def __getitems__(self, indices: Sequence[int]) -> list[Any]:
        """The samples of a batch, of each dataset at once if it can."""
        if isinstance(self.datasets, dict):
            rows = zip(*(_samples(dataset, indices) for dataset in self.datasets.values()))
            return [dict(zip(self.datasets, row)) for row in rows]
        return list(zip(*(_samples(dataset, indices) for dataset in self.datasets)))

    def __len__(self) -> int:
        return self._length


def _samples(dataset: Any, indices: Sequence[Any]) -> Sequence[Any]:
    whole = getattr(dataset, "__getitems__", None)
    if whole is None:
        return [dataset[index] for index in indices]
    samples: Sequence[Any] = whole(indices)
    if len(samples) != len(indices):
        raise ValueError(
            f"{type(dataset).__name__}.__getitems__() gave {len(samples)} samples for {len(indices)} numbers"
        )
    return samples


def random_split(
    dataset: Dataset[T_co], lengths: Sequence[int | float], generator: Generator | None = None
) -> list[Subset[T_co]]:
    """Split a dataset at random.

    Args:
        dataset: what to split.
        lengths: how many samples each part gets, or which fractions, which then add up to 1; what rounding down leaves is
            dealt out one by one, from the first part on.
        generator: where the random order comes from.

    Raises:
        ValueError: the lengths do not add up.
    """
    size = length_of(dataset)
    counts = _counts(lengths, size)
    if sum(counts) != size:
        raise ValueError(f"the lengths {list(lengths)} do not add up to the {size} samples of the dataset")
    order = randperm(size, generator=generator).tolist()
    ends = list(accumulate(counts))
    return [Subset(dataset, order[end - count : end]) for end, count in zip(ends, counts)]


def _counts(lengths: Sequence[int | float], size: int) -> list[int]:
    if not math.isclose(sum(lengths), 1):
        return [int(length) for length in lengths]
    if any(not 0 <= fraction <= 1 for fraction in lengths):
        raise ValueError(f"fractions must be between 0 and 1, and you gave {list(lengths)}")
    counts = [math.floor(size * fraction) for fraction in lengths]
    for part in range(size - sum(counts)):
        counts[part % len(counts)] += 1
    return counts
