"""Torch values as plain data: NumPy arrays and tuples, so that the other side needs no torch to read them.

A tensor is data (``packed``) or, inside a recorded program, a place: an argument or the result of a step. Pickle's
persistent ids stand for both places and torch's own kinds of values (dtypes, constants, functions).
"""

from __future__ import annotations

import io
import pickle
from typing import Any

import torch
from torch.overrides import resolve_name
from torch.utils._pytree import tree_flatten

CONSTANTS = (torch.memory_format, torch.layout, torch.qscheme)


def packed(value: Any) -> Any:
    """``("tensor", dtype, array, requires_grad)`` for a tensor, anything else as it is."""
    if not isinstance(value, torch.Tensor):
        return str(value) if isinstance(value, (torch.dtype, torch.device)) else value
    if value.layout is not torch.strided:
        raise pickle.PicklingError("not a dense tensor")
    plain = value.view(torch.uint16) if value.dtype is torch.bfloat16 else value
    array = plain.numpy(force=True)
    return "tensor", str(value.dtype).removeprefix("torch."), array.copy(), value.requires_grad


def packed_all(values: Any) -> list[Any]:
    """The leaves of nested ``values``, packed."""
    return [packed(value) for value in tree_flatten(values)[0]]


class Pickler(pickle.Pickler):
    """Writes torch's values as persistent ids, and objects named in ``places`` (by ``id``) as those places."""

    def __init__(self, file: io.BytesIO, places: dict[int, Any]) -> None:
        super().__init__(file, protocol=5)
        self.places = places

    def persistent_id(self, obj: Any) -> Any:
        """The id of what the other side puts in the place of ``obj``; ``None`` for plain data."""
        place = self.places.get(id(obj))
        if place is not None:
            return place
        if isinstance(obj, torch.Tensor):
            return packed(obj)
        if isinstance(obj, torch.dtype):
            return "dtype", str(obj).removeprefix("torch.")
        if isinstance(obj, torch.device):
            return "device", str(obj)
        if isinstance(obj, torch.Size):
            return "size", tuple(obj)
        if isinstance(obj, CONSTANTS):
            return "constant", str(obj)
        if isinstance(obj, torch.Generator):
            return "generator", obj.initial_seed()
        name = resolve_name(obj) if callable(obj) and not isinstance(obj, type) else None
        return None if name is None else ("function", name)


def pickled(value: Any, places: dict[int, Any] | None = None) -> bytes:
    """``value`` as bytes that the other side can read.

    Raises:
        Exception: something in it has no meaning there.
    """
    file = io.BytesIO()
    Pickler(file, places or {}).dump(value)
    return file.getvalue()
