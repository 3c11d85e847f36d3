"""Conversion of values that the peer packed to values of this library."""

from __future__ import annotations

import inspect
import io
import pickle
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import telegrad as tg

from ...core.types import Array

CONSTANTS = "memory_format", "contiguous_format", "preserve_format", "channels_last", "strided", "sparse_coo"


class Missing(Exception):
    """Raised when this library has no such name."""


@dataclass(frozen=True)
class Place:
    """Placeholder in a program for one of its arguments, or for a part of a step's result."""

    kind: str
    number: int
    path: tuple[int, ...] = ()


def array_of(data: Any) -> Array:
    """Return the array of packed tensor ``data``."""
    _, dtype, array, _ = data
    return array.view(dtype_of(dtype)) if dtype == "bfloat16" else array


def tensor_of(data: Any) -> tg.Tensor:
    """Return the tensor of packed ``data``: a leaf."""
    return tg.Tensor(np.array(array_of(data), order="C"), data[3])


def dtype_of(name: str) -> Any:
    """Return the dtype called ``name``.

    Raises:
        Missing: there is none.
    """
    return found(f"torch.{ {'bool': 'bool_'}.get(name, name) }")


def found(name: str) -> Any:
    """Return the public object that has PyTorch's ``name``.

    Raises:
        Missing: there is none.
    """
    value: Any = tg
    path = name.removeprefix("torch.").removeprefix("_C.").removeprefix("functional.")
    path = re.sub(r"^nn\.modules\.\w+\.", "nn.", path)
    for part in path.replace("_nn.", "nn.functional.").split("."):
        if part == "__get__":
            prop = value
            return lambda tensor: prop.__get__(tensor)
        try:
            value = inspect.getattr_static(value, part) if path.endswith("__get__") else getattr(value, part)
        except AttributeError:
            raise Missing(name) from None
    return value


class Unpickler(pickle.Unpickler):
    """Unpickler of plain data and the peer's persistent ids; of classes it loads only NumPy's and Python's."""

    def persistent_load(self, pid: Any) -> Any:
        """Return the value, or the placeholder, of an id."""
        kind, *rest = pid
        if kind in ("leaf", "result"):
            return Place(kind, *rest)
        if kind == "tensor":
            return tensor_of(pid)
        if kind == "dtype":
            return dtype_of(rest[0])
        if kind == "size":
            return tuple(rest[0])
        if kind == "generator":
            return tg.Generator().manual_seed(rest[0])
        return rest[0] if kind == "device" else found(rest[0])

    def find_class(self, module: str, name: str) -> Any:
        """Return a class of NumPy or Python, or the class that has the name of one of PyTorch's layers or options.

        Raises:
            Missing: it is another class.
        """
        if module.split(".")[0] in ("numpy", "builtins", "collections", "_codecs"):
            return super().find_class(module, name)
        if module.startswith("torch.nn.modules."):
            return found(f"{module}.{name}")
        raise Missing(f"{module}.{name}")


def unpickled(data: bytes) -> Any:
    """Return the object that ``pickled`` wrote."""
    return Unpickler(io.BytesIO(data)).load()


def filled(value: Any, values: dict[Place, Any]) -> Any:
    """Return ``value`` with its placeholders replaced by their values."""
    if isinstance(value, Place):
        result = values[Place(value.kind, value.number)]
        for number in value.path:
            result = result[number]
        return result
    if isinstance(value, (tuple, list)):
        return type(value)([filled(item, values) for item in value])
    if isinstance(value, dict):
        return {key: filled(item, values) for key, item in value.items()}
    if isinstance(value, slice):
        return slice(filled(value.start, values), filled(value.stop, values), filled(value.step, values))
    return value


def leaves_of(value: Any) -> list[Any]:
    """Return the leaves of nested tuples, lists and dicts."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        return [leaf for item in value for leaf in leaves_of(item)]
    return [value]
