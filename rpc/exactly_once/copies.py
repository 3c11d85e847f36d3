"""Copies of the arguments of a call that may have to be sent again, or be saved in a checkpoint."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base.errors import ArgumentTypeError
from ...core import Tensor

_PLAIN_TYPES = (type(None), bool, int, float, complex)
PLAIN_BYTES = 16  # counted for a number


def captured(value: Any, where: str) -> tuple[Any, int]:
    """Return a copy of an argument that no other code changes, and its size in bytes.

    Args:
        value: the argument.
        where: names it in errors.

    Raises:
        ArgumentTypeError: it is of another type than those that a checkpoint can keep.
    """
    kind = type(value)
    if kind in _PLAIN_TYPES or isinstance(value, np.generic):
        return value, PLAIN_BYTES
    if kind in (str, bytes):
        return value, len(value)
    if isinstance(value, Tensor):
        copy = value.detach().clone()
        return copy, copy.nbytes
    if kind is np.ndarray and not value.dtype.hasobject:
        return value.copy(), value.nbytes
    if kind in (list, tuple):
        items = [captured(each, f"{where}[{place}]") for place, each in enumerate(value)]
        return kind(copy for copy, _ in items), sum(size for _, size in items) + PLAIN_BYTES
    if kind is dict:
        pairs = {key: captured(each, f"{where}[{key!r}]") for key, each in value.items()}
        for key in value:
            captured(key, f"key {key!r} of {where}")
        return {key: copy for key, (copy, _) in pairs.items()}, sum(size for _, size in pairs.values()) + PLAIN_BYTES
    raise ArgumentTypeError(
        f"{where} is a {kind.__name__}; the arguments of an exactly-once call may have to be kept in a checkpoint, so they are "
        "tensors, arrays, numbers, texts, bytes, None, and lists, tuples and dicts of these"
    )


def captured_request(name: str, args: Any, kwargs: Any) -> tuple[tuple[str, tuple[Any, ...], dict[str, Any]], int]:
    """Return what is kept of a call, and its size in bytes.

    Args:
        name: of the function, by which the callee finds it.
        args, kwargs: its arguments, which are copied.
    """
    places = [captured(each, f"argument {place}") for place, each in enumerate(args)]
    names = {key: captured(each, f"argument {key}=") for key, each in kwargs.items()}
    size = sum(size for _, size in [*places, *names.values()]) + len(name)
    return (name, tuple(copy for copy, _ in places), {key: copy for key, (copy, _) in names.items()}), size
