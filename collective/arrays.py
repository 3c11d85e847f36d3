"""The arrays behind the tensors that collectives read and fill."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core import Tensor
from ..core.extend import Array
from ..rpc.extend import note_written, tensor_over


def check_tensor(name: str, tensor: Any) -> Tensor:
    """Return the argument if it is a dense tensor, or for a tensor of PyTorch one of ours over its memory.

    Raises:
        TypeError: it is neither, or one that cannot be written in place.
    """
    return tensor_over(name, tensor, use="take part in a collective")


def check_list(name: str, tensors: Any, size: int) -> list[Tensor]:
    """Return a list of tensors of one dtype, one for each member.

    Raises:
        TypeError: it is no list of tensors of one dtype.
        ValueError: it has not one for each member.
    """
    if not isinstance(tensors, (list, tuple)):
        raise TypeError(f"{name} must be a list of tensors; you gave {type(tensors).__name__}")
    if len(tensors) != size:
        raise ValueError(f"{name} must have {size} tensors, one for each member of the group; you gave {len(tensors)}")
    checked = [check_tensor(f"{name}[{index}]", tensor) for index, tensor in enumerate(tensors)]
    if len({tensor.dtype for tensor in checked}) > 1:
        raise TypeError(f"{name} must have tensors of one dtype; you gave {[str(t.dtype) for t in checked]}")
    return checked


def check_same(name: str, tensor: Tensor, like: Tensor, other: str) -> None:
    """Check that two tensors have one dtype and equal numbers of elements.

    Raises:
        ValueError: they have not.
    """
    if tensor.dtype != like.dtype or tensor.numel() != like.numel():
        raise ValueError(
            f"{name} has shape {tuple(tensor.shape)} and dtype {tensor.dtype}, and {other} has {tuple(like.shape)} and "
            f"{like.dtype}: they must agree"
        )


def flat(tensor: Tensor) -> Array:
    """Return the elements of a tensor as one C-contiguous row: its own memory where that is possible."""
    array: Array = np.ascontiguousarray(tensor.detach().numpy())
    return array.reshape(-1)


def fill(tensor: Tensor, row: Array) -> None:
    """Write a row of elements into a tensor, unless they are there."""
    array = tensor.detach().numpy()
    if not (array.flags.c_contiguous and np.may_share_memory(array, row)):
        np.copyto(array, row.reshape(array.shape))
    note_written(tensor)


def describe(tensor: Tensor) -> str:
    """Return dtype and shape, which must be equal on all ranks."""
    return f"{tensor.dtype}{list(tensor.shape)}"
