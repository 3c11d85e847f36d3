"""Datasets: samples by index or by iteration; their concatenations; datasets of tensors."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, Generic, TypeVar

import numpy as np

from ..core import Tensor

T_co = TypeVar("T_co", covariant=True)


class Dataset(Generic[T_co]):
    """Base class of datasets with samples by index (``torch.utils.data.Dataset``).

    Subclasses define ``__getitem__(index)``, mostly ``__len__()``, and may define ``__getitems__(indices)``, which returns the
    samples of a whole batch at once. ``a + b`` is the ``ConcatDataset`` of two datasets.
    """

    def __getitem__(self, index: Any) -> T_co:
        raise NotImplementedError(f"{type(self).__name__} must define __getitem__(index)")

    def __add__(self, other: Dataset[Any]) -> Dataset[Any]:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T_co]):
    """Base class of datasets that are only iterated (``torch.utils.data.IterableDataset``): subclasses define ``__iter__``."""

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError(f"{type(self).__name__} must define __iter__()")

    def __add__(self, other: Dataset[Any]) -> Dataset[Any]:
        return ChainDataset([self, other])


class ConcatDataset(Dataset[T_co]):
    """Dataset of the samples of several datasets, one dataset after the other (``torch.utils.data.ConcatDataset``).

    Args:
        datasets: datasets with a length.

    Raises:
        TypeError: a dataset is an ``IterableDataset``, or has no length.
        ValueError: there are no datasets.
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
    """Dataset of the samples of several iterable datasets, one after the other (``torch.utils.data.ChainDataset``).

    Args:
        datasets: iterable datasets.

    Raises:
        TypeError: a dataset is not an ``IterableDataset``; raised by the iteration.
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


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """Dataset of the rows of tensors: sample ``i`` is ``(first[i], second[i], ...)`` (``torch.utils.data.TensorDataset``).

    Args:
        tensors: tensors of at least one dimension, with the same length of the first one.

    Raises:
        ValueError: there are no tensors, or their lengths differ.
    """

    def __init__(self, *tensors: Tensor) -> None:
        lengths = [len(tensor) for tensor in tensors]
        if not lengths or len(set(lengths)) > 1:
            raise ValueError(f"TensorDataset needs tensors of one length, and you gave lengths {lengths}")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple([tensor[index] for tensor in self.tensors])

    def __getitems__(self, indices: Sequence[int]) -> Sequence[tuple[Tensor, ...]]:
        """Return the samples of a batch; each tensor is indexed once for all of them."""
        if type(self).__getitem__ is not TensorDataset.__getitem__:
            return [self[index] for index in indices]
        rows = np.asarray(indices, dtype=np.int64)
        return Columns([tensor[rows] for tensor in self.tensors])

    def __len__(self) -> int:
        return len(self.tensors[0])


class Columns(Sequence[tuple[Tensor, ...]]):
    """Samples of a batch that are kept as columns: a tensor for each entry of a sample, with a row for each sample."""

    def __init__(self, columns: list[Tensor]) -> None:
        self.columns = columns

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return list(self)[index]
        return tuple(column[index] for column in self.columns)

    def __iter__(self) -> Iterator[tuple[Tensor, ...]]:
        return zip(*self.columns)

    def __len__(self) -> int:
        return len(self.columns[0])


def length_of(dataset: Any) -> int:
    """Return the number of samples of a dataset.

    Raises:
        TypeError: the dataset has no length.
    """
    try:
        return len(dataset)
    except TypeError:
        raise TypeError(f"{type(dataset).__name__} has no length; define __len__()") from None
