"""Datasets: what can be indexed or iterated for samples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from ..core import Tensor

T_co = TypeVar("T_co", covariant=True)


class Dataset(Generic[T_co]):
    """Samples by number (``torch.utils.data.Dataset``). Subclasses define ``__getitem__``, and mostly ``__len__``.

    ``__getitems__(indices)``, where it is defined, gives the samples of a whole batch at once.
    """

    def __getitem__(self, index: Any) -> T_co:
        raise NotImplementedError(f"{type(self).__name__} must define __getitem__(index)")

    def __add__(self, other: Dataset[Any]) -> Dataset[Any]:
        from .combined import ConcatDataset

        return ConcatDataset([self, other])


class IterableDataset(Dataset[T_co]):
    """Samples in an order of their own. Subclasses define ``__iter__``."""

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError(f"{type(self).__name__} must define __iter__()")

    def __add__(self, other: Dataset[Any]) -> Dataset[Any]:
        from .combined import ChainDataset

        return ChainDataset([self, other])


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
        return tuple([tensor[index] for tensor in self.tensors])

    def __getitems__(self, indices: Sequence[int]) -> Sequence[tuple[Tensor, ...]]:
        """The samples of a batch; each tensor is indexed once for all of them."""
        if type(self).__getitem__ is not TensorDataset.__getitem__:
            return [self[index] for index in indices]
        rows = np.asarray(indices, dtype=np.int64)
        return Columns([tensor[rows] for tensor in self.tensors])

    def __len__(self) -> int:
        return len(self.tensors[0])


class Columns(Sequence[tuple[Tensor, ...]]):
    """Samples that are kept as the batch they will become: a tensor for each entry of a sample, with a row for each."""

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
    """How many samples a dataset has.

    Raises:
        TypeError: it does not say.
    """
    try:
        return len(dataset)
    except TypeError:
        raise TypeError(f"{type(dataset).__name__} has no length; define __len__()") from None
