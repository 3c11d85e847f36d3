"""Datasets made of others: subsets, stacks and random splits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, TypeVar

from ..core import Generator, randperm
from .dataset import Dataset, length_of

T_co = TypeVar("T_co", covariant=True)


class Subset(Dataset[T_co]):
    """Dataset of another dataset's samples at ``indices`` (``torch.utils.data.Subset``)."""

    def __init__(self, dataset: Dataset[T_co], indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index: Any) -> T_co:
        if isinstance(index, list):
            return self.dataset[[self.indices[each] for each in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices: Sequence[int]) -> Sequence[T_co]:
        """Return the samples of a batch, all at once if the dataset can."""
        if type(self).__getitem__ is not Subset.__getitem__:
            return [self[index] for index in indices]
        return _samples(self.dataset, [self.indices[index] for index in indices])

    def __len__(self) -> int:
        return len(self.indices)


class StackDataset(Dataset[Any]):
    """Dataset whose samples are tuples of samples of several datasets (``torch.utils.data.StackDataset``).

    Datasets that are given by name make samples that are dictionaries.

    Args:
        args: datasets of one length.
        kwargs: datasets of one length, by name, instead.

    Raises:
        ValueError: there are no datasets, some are given by position and some by name, or their lengths differ.
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
        """Return the samples of a batch, of each dataset at once if it can."""
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
    """Return random parts of a dataset (``torch.utils.data.random_split``).

    Args:
        dataset: the dataset to split.
        lengths: the number of samples of each part, or fractions that add up to 1. Fractions are rounded down, and the samples
            that are left go to the parts one by one, from the first on.
        generator: draws the random order; ``None`` is the default generator.

    Raises:
        ValueError: the lengths do not add up to that of the dataset.
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
