"""From a list of samples to a batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..core import Tensor, float64, stack, tensor


def default_collate(batch: Sequence[Any]) -> Any:
    """Stack the samples of a batch along a new first dimension (``torch.utils.data.default_collate``).

    Tensors and arrays are stacked, numbers become a tensor, strings stay a list; dictionaries, tuples and lists are
    collated entry by entry (a tuple comes back as a list, unless it is a named one).

    Raises:
        TypeError: samples hold something else; give the loader a ``collate_fn``.
        ValueError: the samples are of unequal lengths or shapes.
    """
    first = batch[0]
    if isinstance(first, Tensor):
        return _stacked(batch)
    if isinstance(first, (np.ndarray, np.generic)) and first.dtype.kind in "biufc":
        return _stacked([Tensor(np.asarray(sample)) for sample in batch])
    if isinstance(first, float):
        return tensor(list(batch), dtype=float64)
    if isinstance(first, int):
        return tensor(list(batch))
    if isinstance(first, (str, bytes)):
        return list(batch)
    if isinstance(first, Mapping):
        return _alike(first, {key: default_collate([sample[key] for sample in batch]) for key in first})
    if isinstance(first, Sequence):
        return _transposed(first, batch)
    raise TypeError(
        f"default_collate() cannot make a batch of {type(first).__name__}; it takes tensors, arrays, numbers, strings, "
        "dicts, tuples and lists: give the DataLoader a collate_fn"
    )


def _stacked(samples: Sequence[Tensor]) -> Tensor:
    shapes = dict.fromkeys(sample.shape for sample in samples)
    if len(shapes) > 1:
        raise ValueError(
            f"samples of different shapes do not make a batch: {', '.join(map(str, shapes))}; "
            "pad them, or give the DataLoader a collate_fn"
        )
    return stack(samples)


def _transposed(first: Sequence[Any], batch: Sequence[Sequence[Any]]) -> Any:
    if any(len(sample) != len(first) for sample in batch):
        raise ValueError(f"samples of different lengths do not make a batch: {sorted({len(s) for s in batch})}")
    columns = [default_collate(column) for column in zip(*batch)]
    if isinstance(first, tuple):
        return type(first)(*columns) if hasattr(first, "_fields") else columns
    return _alike(first, columns)


def _alike(first: Any, collated: Any) -> Any:
    """The collated entries in a container of the samples' own class, if that can be made so."""
    try:
        return type(first)(collated)
    except TypeError:
        return collated
