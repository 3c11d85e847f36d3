"""Methods that are no functions or take their arguments in another order, and functions that are such methods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from ..dtypes import bfloat16 as bfloat16_type
from ..random import Generator
from ..tensors import Operand, Tensor
from .create.filling import fill_
from .elementwise import conversion
from .index import masking
from .random import sampling
from .reduce.reductions import sum as total
from .table.array_functions import stretched_dims

__all__ = [
    "detach",
    "fill",
    "resolve_neg",
]
METHODS = (
    "apply_",
    "bernoulli",
    "bfloat16",
    "cpu",
    "fill_diagonal_",
    "map_",
    "multinomial",
    "pin_memory",
    "resolve_neg",
    "sum_to_size",
    "type",
    "where",
)


def where(input: Tensor, condition: Tensor, other: Operand) -> Tensor:
    """This tensor where ``condition`` is true, and ``other`` elsewhere: ``tg.where(condition, input, other)``."""
    return masking.where(condition, input, other)


def multinomial(
    input: Tensor, num_samples: int, replacement: bool = False, *, generator: Generator | None = None
) -> Tensor:
    """``tg.multinomial``."""
    return sampling.multinomial(input, num_samples, replacement, generator=generator)


def bernoulli(input: Tensor, p: float | None = None, *, generator: Generator | None = None) -> Tensor:
    """``tg.bernoulli``."""
    return sampling.bernoulli(input, p, generator=generator)


def bfloat16(input: Tensor) -> Tensor:
    """``to(bfloat16)``.

    Raises:
        TypeError: the type is not there: ``ml_dtypes`` is not installed.
    """
    if bfloat16_type is None:
        raise TypeError("there is no bfloat16; install the package ml_dtypes")
    return conversion.to(input, bfloat16_type)


def cpu(input: Tensor) -> Tensor:
    """The tensor itself, which lives there."""
    return input


def pin_memory(input: Tensor) -> Tensor:
    """The tensor itself: there is no device that copies from pinned memory."""
    return input


def type(input: Tensor, dtype: npt.DTypeLike | None = None) -> Any:
    """This tensor in ``dtype``; without that, the name of its own, as in ``"torch.FloatTensor"``: ``"float32"``."""
    return str(input.dtype) if dtype is None else conversion.to(input, dtype)


def sum_to_size(input: Tensor, *size: Any) -> Tensor:
    """The sums over the dimensions that broadcasting from ``size`` would have stretched: what undoes ``expand``.

    Raises:
        ValueError: ``size`` cannot be broadcast to this shape.
    """
    wanted: tuple[int, ...] = tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else size
    extra = input.ndim - len(wanted)
    if extra < 0 or any(length not in (1, own) for length, own in zip(wanted, input.shape[extra:])):
        raise ValueError(f"sum_to_size() cannot sum shape {input.shape} to {wanted}")
    dims = stretched_dims(input.shape, wanted)
    return (total(input, dims) if dims else input).reshape(wanted)


def fill_diagonal_(input: Tensor, fill_value: float, wrap: bool = False) -> Tensor:
    """Fill the diagonal, of all dimensions at once; with ``wrap``, of a tall matrix again and again, a row left out between.

    Raises:
        ValueError: fewer than two dimensions, or more than two of different lengths.
    """
    if input.ndim < 2 or (input.ndim > 2 and len(set(input.shape)) > 1):
        raise ValueError(f"fill_diagonal_() takes a matrix, or dimensions of one length, not shape {input.shape}")
    if input.ndim > 2 or not wrap:
        places = np.arange(min(input.shape))
        input[(places,) * input.ndim] = fill_value
    else:
        rows, columns = input.shape
        places = np.arange(0, rows * columns, columns + 1)
        input[places // columns, places % columns] = fill_value
    return input


def apply_(input: Tensor, callable: Callable[[Any], Any]) -> Tensor:
    """Put each element through a Python function; slow, and not recorded.

    Raises:
        TypeError: the tensor requires grad.
    """
    return map_(input, input, lambda own, _: callable(own))


def map_(input: Tensor, tensor: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
    """Put each element, and that of ``tensor`` at the same place, through a Python function; slow, and not recorded.

    Raises:
        TypeError: the tensor requires grad.
    """
    if input.requires_grad:
        raise TypeError("apply_() and map_() cannot be recorded; call them on detach()")
    array, others = input._array, np.broadcast_to(tensor._array, input.shape)
    for place in np.ndindex(array.shape):
        array[place] = callable(array[place].item(), others[place].item())
    input._counter[0] += 1
    return input


def resolve_neg(input: Tensor) -> Tensor:
    """The tensor itself: negations are never left for later here."""
    return input


def detach(input: Tensor) -> Tensor:
    """The same memory, outside the graph: ``input.detach()``."""
    return input.detach()


def fill(input: Tensor, value: Any) -> Tensor:
    """A copy filled with ``value``, a number or a 0-d tensor."""
    return fill_(input.clone(), value)
