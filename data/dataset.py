"""Datasets: what can be indexed or iterated for samples, and datasets made of others."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, Generic, TypeVar

from ..core import Generator, Tensor, randperm

T_co = TypeVar("T_co", covariant=True)


class Dataset(Generic[T_co]):
    """Samples by number (``torch.utils.data.Dataset``). Subclasses define ``__getitem__``, and mostly ``__len__``.

    ``__getitems__(indices)``, where it is defined, gives the samples of a whole batch at once.
    """

    def __getitem__(self, index: Any) -> T_co:
        raise NotImplementedError(f"{type(self).__name__} must define __getitem__(index)")

    def __add__(self, other: Dataset[Any]) -> ConcatDataset[Any]:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T_co]):
    """Samples in an order of their own. Subclasses define ``__iter__``."""

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError(f"{type(self).__name__} must define __iter__()")


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """The rows of tensors of one length: sample ``i`` is ``(first[i], second[i], ...)``.

    Raises:
        ValueError: no tensors, or of unequal lengths.
    """

    def __init__(self, *tensors: Tensor) -> None:
        lengths = [len(tensor) for tensor in tensors]
        if not lengths or len(set(lengths)) > 1:
            raise ValueError(f"TensorDataset needs tensors of one length, and you gave lengths {lengths}")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> int:
        return len(self.tensors[0])


class Subset(Dataset[T_co]):
    """The samples of another dataset at ``indices``."""

    def __init__(self, dataset: Dataset[T_co], indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index: Any) -> T_co:
        if isinstance(index, list):
            return self.dataset[[self.indices[each] for each in index]]
        return self.dataset[self.indices[index]]

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
        self.cumulative_sizes = list(accumulate(map(_length, self.datasets)))

    def __getitem__(self, index: int) -> T_co:
        number = index + len(self) if index < 0 else index
        if not 0 <= number < len(self):
            raise IndexError(f"sample {index} is out of range: there are {len(self)}")
        which = bisect_right(self.cumulative_sizes, number)
        return self.datasets[which][number - (self.cumulative_sizes[which - 1] if which else 0)]

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]


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
    size = _length(dataset)
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


def _length(dataset: Any) -> int:
    try:
        return len(dataset)
    except TypeError:
        raise TypeError(f"{type(dataset).__name__} has no length; define __len__()") from None
