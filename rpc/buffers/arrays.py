"""Bytes of the arrays that users give to a buffer, to be read from or written to."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.errors import ArgumentTypeError, ArgumentValueError
from ...core.extend import Array, Tensor, changed
from ..wire.libraries.registry import library_of


def elements(name: str, value: Any) -> Array:
    """Return the array of a tensor or array, over the same memory.

    Args:
        name: of the argument, for errors.
        value: a tensor, an array of NumPy, or one of a library whose memory can be used in place.

    Raises:
        ArgumentTypeError: it is none of these.
    """
    if isinstance(value, Tensor) and not value.is_sparse:
        return value.detach().numpy()
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        return value
    if (library := library_of(value)) is not None:
        try:
            return library.memory(value)
        except TypeError as error:
            raise ArgumentTypeError(f"{name} cannot be used: {error}") from None
    raise ArgumentTypeError(f"{name} must be a dense tensor or an array of numbers; you gave {type(value).__name__}")


def bytes_of(name: str, value: Any, written: bool) -> Array:
    """Return the bytes of a tensor or array, over the same memory, as a row of uint8.

    Args:
        name: of the argument, for errors.
        value: as for ``elements``.
        written: whether it will be written to.

    Raises:
        ArgumentTypeError: it is none of these.
        ArgumentValueError: its elements do not lie in a row, or cannot be written to.
    """
    array = elements(name, value)
    if not array.flags.c_contiguous:
        raise ArgumentValueError(f"{name} must lie in one piece of memory; you gave a view, give its contiguous()")
    if written and not array.flags.writeable:
        raise ArgumentValueError(f"{name} must be writable; you gave an array that is not")
    row: Array = array.reshape(-1).view(np.uint8)
    return row


def filled(value: Any) -> None:
    """Note that elements were written to the memory of a tensor or array."""
    if isinstance(value, Tensor):
        changed(value)
    elif not isinstance(value, np.ndarray) and (library := library_of(value)) is not None:
        library.changed(value)
