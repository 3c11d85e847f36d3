"""Collation: lists of samples become batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..core import Tensor, float64, stack
from .dataset import Columns


def default_collate(batch: Sequence[Any]) -> Any:
    """Stack the samples of a batch along a new first dimension (``torch.utils.data.default_collate``).

    Tensors and arrays are stacked, numbers become a tensor, strings a list; dictionaries, tuples and lists are collated
    entry by entry (a tuple becomes a list, unless it is a named one).

    Args:
        batch: samples of one structure; their tensors have one shape at each entry.

    Returns:
        The structure of a sample, with tensors of shape ``(len(batch), *shape)``.

    Raises:
        TypeError: samples hold something else; give the loader a ``collate_fn``.
        ValueError: the samples have different lengths, keys or shapes.

    Example:
        >>> from telegrad.data import default_collate
        >>> default_collate([(1.0, "a"), (2.0, "b")])
        [tensor([1., 2.], dtype=float64), ['a', 'b']]
    """
    if type(batch) is Columns:
        return list(batch.columns)
    first = batch[0]
    if isinstance(first, Tensor):
        return _stacked(batch)
    if isinstance(first, (np.ndarray, np.generic)) and is_numeric(first):
        return _stacked([Tensor(np.asarray(sample)) for sample in batch])
    if isinstance(first, (bool, int, float, complex)):
        return Tensor(np.array(batch, dtype=_number_type(first)))
    if isinstance(first, (str, bytes)):
        return list(batch)
    if isinstance(first, Mapping):
        return _alike(first, {key: default_collate(_entries(batch, key)) for key in first})
    if isinstance(first, Sequence):
        return _transposed(first, batch)
    raise TypeError(
        f"default_collate() cannot make a batch of {type(first).__name__}; it takes tensors, arrays, numbers, strings, "
        "dicts, tuples and lists: give the DataLoader a collate_fn"
    )


def _entries(batch: Sequence[Any], key: Any) -> list[Any]:
    try:
        return [sample[key] for sample in batch]
    except KeyError:
        raise ValueError(
            f"samples of different keys do not make a batch: {key!r} is missing in one; give the DataLoader a collate_fn"
        ) from None


def default_convert(data: Any) -> Any:
    """Make tensors of the NumPy arrays and scalars in a sample (``torch.utils.data.default_convert``).

    Dictionaries, tuples and lists are converted entry by entry (a tuple becomes a list, unless it is a named one); anything
    else is returned as it is.
    """
    if isinstance(data, (Tensor, str, bytes)):
        return data
    if isinstance(data, (np.ndarray, np.generic)):
        return Tensor(np.asarray(data)) if is_numeric(data) else data
    if isinstance(data, Mapping):
        return _alike(data, {key: default_convert(value) for key, value in data.items()})
    if isinstance(data, Sequence):
        return _alike(data, [default_convert(item) for item in data])
    return data


def is_numeric(array: Any) -> bool:
    """Return whether tensors can hold the dtype of an array (or NumPy scalar)."""
    # "V" is the kind of dtypes from other packages, such as bfloat16.
    return array.dtype.kind in "biufc" or (array.dtype.kind == "V" and array.dtype.names is None)


def _number_type(number: Any) -> Any:
    return float64 if isinstance(number, float) else None


def _stacked(samples: Sequence[Tensor]) -> Tensor:
    arrays = [sample._array for sample in samples]
    layouts = {(array.shape, array.dtype) for array in arrays}
    if len(layouts) > 1 and len(shapes := dict.fromkeys(array.shape for array in arrays)) > 1:
        raise ValueError(
            f"samples of different shapes do not make a batch: {', '.join(map(str, shapes))}; "
            "pad them, or give the DataLoader a collate_fn"
        )
    # stack() also records, promotes, and lets tensor classes take over.
    if len(layouts) > 1 or set(map(type, samples)) != {Tensor} or any([sample._requires_grad for sample in samples]):  # noqa: C419 - faster
        return stack(samples)
    ((shape, dtype),) = layouts
    # np.stack() would take several times as long: it makes a view of each.
    return Tensor(np.concatenate(arrays).reshape(len(samples), *shape) if shape else np.array(arrays, dtype))


def _transposed(first: Sequence[Any], batch: Sequence[Sequence[Any]]) -> Any:
    if any(len(sample) != len(first) for sample in batch):
        raise ValueError(f"samples of different lengths do not make a batch: {sorted({len(s) for s in batch})}")
    return _alike(first, [default_collate(column) for column in zip(*batch)])


def _alike(sample: Any, entries: Any) -> Any:
    """Return the entries in a container of the sample's class, if that takes them; those of a plain tuple in a list."""
    if isinstance(sample, tuple):
        return type(sample)(*entries) if hasattr(sample, "_fields") else entries
    try:
        return type(sample)(entries)
    except TypeError:
        return entries
