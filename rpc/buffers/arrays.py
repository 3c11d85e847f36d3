"""Bytes of the arrays that users give to a buffer, to be read from or written to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...base.errors import ArgumentTypeError, ArgumentValueError
from ...core.extend import bfloat16
from ..wire.libraries.in_place import tensor_over

if TYPE_CHECKING:
    from ...core.extend import Array

NUMBER_KINDS = "biufc"  # of NumPy's dtypes


def elements(name: str, value: Any) -> Array:
    """Return the array of a tensor or array, over the same memory.

    Args:
        name: of the argument, for errors.
        value: a tensor, an array of NumPy, or one of a library whose memory can be used in place.

    Raises:
        ArgumentTypeError: it is none of these.
    """
    wanted = "a dense tensor or an array of numbers"
    if isinstance(value, np.ndarray):
        if value.dtype.kind not in NUMBER_KINDS and value.dtype != bfloat16:
            raise ArgumentTypeError(f"{name} must be {wanted}; you gave an array of {value.dtype}")
        return value
    return tensor_over(name, value, wanted).detach().numpy()


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
