"""Tensors that get other memory in place: ``resize_``, ``resize_as_`` and ``set_``."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....base.errors import AutogradError
from ...shapes import to_shape
from ...tensors import Tensor
from ..table.operation import operation


@operation(function=False, method=True)
def resize_(input: Tensor, *sizes: Any, memory_format: Any = None) -> Tensor:
    """Change the shape of this tensor, and return it; it keeps its first elements, and further ones are undefined.

    A tensor that becomes larger gets new memory; views and tensors that shared the former memory keep that.

    Args:
        input: the tensor to change; its elements must be contiguous.
        *sizes: the lengths of the dimensions, one by one or as one tuple.
        memory_format: has no effect.

    Raises:
        AutogradError: ``input`` requires grad.
        ValueError: the elements of ``input`` are not contiguous.
    """
    shape = to_shape(sizes)
    if input.requires_grad:
        raise AutogradError("resize_() cannot change a tensor that requires grad; use reshape() or pad()")
    if not input.is_contiguous():
        raise ValueError(f"resize_() needs contiguous elements, and this tensor has strides {input.stride()}")
    flat, count = input._array.reshape(-1), math.prod(shape)
    if count > flat.size:
        flat = np.resize(flat, count) if flat.size else np.empty(count, flat.dtype)
        input._replace(flat.reshape(shape))
    else:
        input._array = flat[:count].reshape(shape)
    return input


@operation(method=True)
def resize_as_(input: Tensor, the_template: Tensor, *, memory_format: Any = None) -> Tensor:
    """Give this tensor the shape of another, as ``resize_`` does, and return it. Errors: those of ``resize_``.

    Args:
        input: the tensor to change.
        the_template: has the wanted shape.
        memory_format: has no effect.
    """
    return resize_(input, the_template.shape)


@operation(function=False, method=True)
def set_(input: Tensor, source: Tensor) -> Tensor:
    """Make this tensor share the memory, shape and strides of ``source``, and return it.

    Raises:
        AutogradError: a tensor requires grad.
        TypeError: the dtypes differ.
    """
    if input.requires_grad or source.requires_grad:
        raise AutogradError("set_() cannot change or share a tensor that requires grad; assign to data instead")
    if input.dtype != source.dtype:
        raise TypeError(f"set_() needs a source of dtype {input.dtype}, and you gave {source.dtype}")
    input._replace(source._array)
    input._counter = source._counter
    return input
