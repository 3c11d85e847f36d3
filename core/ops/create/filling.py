"""In-place filling: with a value, another tensor, random numbers or the results of a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...autograd.grad_mode import is_grad_enabled
from ...dtypes import finfo, is_inexact
from ...random import Generator, default_generator
from ...tensors import Operand, Tensor
from ...types import Array
from ..elementwise import conversion
from ..index.indexing import setitem
from ..random.sampling import floats
from ..shape import repeating
from ..table.in_place import inplace
from ..table.in_place_history import changed, check_writable
from ..table.operation import operation, published
from .from_data import as_tensor


@published(function=False, method=True)
def copy_(input: Tensor, src: Operand, non_blocking: bool = False) -> Tensor:
    """Copy ``src`` into this tensor, broadcast and converted; gradients flow to ``src``.

    Args:
        input: the tensor to fill.
        src: a tensor, broadcast, or a number.
        non_blocking: has no effect.
    """
    src = as_tensor(src)
    there, here = src._array, input._array
    alike = type(src) is Tensor and there.shape == here.shape and there.dtype == here.dtype
    if not alike or src._requires_grad:  # its gradient comes by the view
        src = repeating.broadcast_to(conversion.to(src, input.dtype), input.shape)
    return _copy(input, src)


@operation(method=True)
def zero_(input: Tensor) -> Tensor:
    """Fill with zeros."""
    return fill_(input, 0)


@operation(function=False, method=True)
def fill_(input: Tensor, value: Any) -> Tensor:
    """Fill with ``value``, a number or a 0-d tensor, which is converted.

    Raises:
        ValueError: ``value`` has dimensions.
    """
    if isinstance(value, Tensor):
        if value.ndim:
            raise ValueError(f"fill_() takes a number or a 0-d tensor, and you gave shape {value.shape}; use copy_()")
        value = conversion.to(value, input.dtype)
    setitem(input, Ellipsis, value)
    return input


@operation(function=False, method=True)
def uniform_(input: Tensor, from_: float = 0.0, to: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with numbers of the uniform distribution on [``from_``, ``to``).

    Args:
        input: the tensor to fill.
        from_: smallest value.
        to: bound above all values.
        generator: source of random numbers; the default one if ``None``.
    """
    return _refill(input, floats("random", input.shape, generator, input.dtype) * (to - from_) + from_)


@operation(function=False, method=True)
def normal_(input: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with numbers of the normal distribution.

    Args:
        input: the tensor to fill.
        mean: the mean.
        std: the standard deviation.
        generator: source of random numbers; the default one if ``None``.
    """
    return _refill(input, floats("standard_normal", input.shape, generator, input.dtype) * std + mean)


@operation(function=False, method=True)
def log_normal_(input: Tensor, mean: float = 1.0, std: float = 2.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with numbers of the log-normal distribution: their logarithms are normal.

    Args:
        input: the tensor to fill.
        mean: mean of the logarithms.
        std: standard deviation of the logarithms.
        generator: source of random numbers; the default one if ``None``.
    """
    return _refill(input, np.exp(floats("standard_normal", input.shape, generator, np.float64) * std + mean))


@operation(function=False, method=True)
def exponential_(input: Tensor, lambd: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with numbers of the exponential distribution, with density ``lambd * exp(-lambd * x)``.

    Args:
        input: the tensor to fill.
        lambd: the rate, above 0.
        generator: source of random numbers; the default one if ``None``.

    Raises:
        ValueError: the rate is not positive.
    """
    if not lambd > 0:
        raise ValueError(f"exponential_() needs a positive rate, and you gave {lambd}")
    return _refill(input, floats("standard_exponential", input.shape, generator, np.float64) / lambd)


@operation(function=False, method=True)
def cauchy_(input: Tensor, median: float = 0.0, sigma: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with numbers of the Cauchy distribution.

    Args:
        input: the tensor to fill.
        median: the median.
        sigma: the scale, half the width at half the maximum.
        generator: source of random numbers; the default one if ``None``.
    """
    drawn = (generator or default_generator).draw("standard_cauchy", input.shape)
    return _refill(input, np.asarray(drawn) * sigma + median)


@operation(function=False, method=True)
def geometric_(input: Tensor, p: float, *, generator: Generator | None = None) -> Tensor:
    """Fill with numbers of the geometric distribution: the number of trials up to the first success.

    Args:
        input: the tensor to fill.
        p: probability of success in a trial, above 0 and at most 1.
        generator: source of random numbers; the default one if ``None``.

    Raises:
        ValueError: ``p`` is not above 0 and at most 1.
    """
    if not 0 < p <= 1:
        raise ValueError(f"geometric_() needs a probability above 0 and up to 1, and you gave {p}")
    return _refill(input, (generator or default_generator).draw("geometric", p, input.shape))


@operation(function=False, method=True)
def bernoulli_(input: Tensor, p: Tensor | float = 0.5, *, generator: Generator | None = None) -> Tensor:
    """Fill with numbers of the Bernoulli distribution: 1 with probability ``p``, else 0.

    Args:
        input: the tensor to fill.
        p: the probability: a number, or a tensor that is broadcast.
        generator: source of random numbers; the default one if ``None``.

    Raises:
        ValueError: a probability is not between 0 and 1.
    """
    chances = np.asarray(p._array if isinstance(p, Tensor) else p)
    if not ((chances >= 0) & (chances <= 1)).all():
        raise ValueError("bernoulli_() takes probabilities between 0 and 1, and you gave other numbers")
    return _refill(input, (generator or default_generator).draw("random", input.shape) < chances)


@operation(function=False, method=True)
def random_(
    input: Tensor, from_: int | None = None, to: int | None = None, *, generator: Generator | None = None
) -> Tensor:
    """Fill with integers from ``from_`` to below ``to``; ``random_(to)`` starts at 0.

    Without bounds, they are from 0 to the largest number of an integer dtype; for floating-point dtypes, up to the number below
    which the dtype holds every integer (2**24 for ``float32``).

    Args:
        input: the tensor to fill.
        from_: smallest value; 0 if ``None``.
        to: bound above all values.
        generator: source of random numbers; the default one if ``None``.

    Raises:
        ValueError: ``from_`` is not below ``to``.
    """
    if to is None:
        from_, to = 0, _past_largest(input) if from_ is None else from_
    low = from_ or 0
    if low >= to:
        raise ValueError(f"random_() needs from_ < to, and you gave {low} and {to}")
    return _refill(input, (generator or default_generator).draw("integers", low, to, input.shape))


def _past_largest(input: Tensor) -> int:
    dtype = input._array.dtype
    if dtype.kind == "b":
        return 2
    if is_inexact(dtype):
        return 1 << min(1 - int(np.log2(finfo(dtype).eps)), 62)
    return int(np.iinfo(dtype).max) + (dtype.itemsize < 8)


def _refill(input: Tensor, values: Array) -> Tensor:
    if is_grad_enabled():
        check_writable(input, input._requires_grad)
    input._array[...] = values
    return changed(input)


def copy(input: Tensor, src: Tensor) -> Tensor:
    """Return ``src``; as an in-place form it replaces the elements and the history of ``input``."""
    return src


_copy = inplace(copy, keeps="overwrite")


@published(function=True)
def fill(input: Tensor, value: Any) -> Tensor:
    """Return a copy filled with ``value``, a number or a 0-d tensor.

    Raises:
        ValueError: ``value`` has dimensions.
    """
    return fill_(input.clone(), value)


@published(function=False, method=True)
def fill_diagonal_(input: Tensor, fill_value: float, wrap: bool = False) -> Tensor:
    """Fill the main diagonal: the elements whose indices are all equal.

    Args:
        input: a matrix, or dimensions of one length.
        fill_value: the value.
        wrap: whether the diagonal of a tall matrix begins again, one row after its end.

    Raises:
        ValueError: there are fewer than two dimensions, or more than two of different lengths.
    """
    if input.ndim < 2 or (input.ndim > 2 and len(set(input.shape)) > 1):
        raise ValueError(f"fill_diagonal_() takes a matrix, or dimensions of one length, not shape {input.shape}")
    if input.ndim > 2 or not wrap:
        diagonal = np.arange(min(input.shape))
        input[(diagonal,) * input.ndim] = fill_value
    else:
        rows, columns = input.shape
        diagonal = np.arange(0, rows * columns, columns + 1)
        input[diagonal // columns, diagonal % columns] = fill_value
    return input


@published(function=False, method=True)
def apply_(input: Tensor, callable: Callable[[Any], Any]) -> Tensor:
    """Replace each element by ``callable(element)``; slow, and not recorded.

    Raises:
        TypeError: the tensor requires grad.
    """
    return map_(input, input, lambda own, _: callable(own))


@published(function=False, method=True)
def map_(input: Tensor, tensor: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
    """Replace each element by ``callable(element, element of tensor)``; slow, and not recorded.

    Args:
        input: the tensor to change.
        tensor: the second arguments, broadcast to the shape of ``input``.
        callable: takes two Python numbers and returns one.

    Raises:
        TypeError: the tensor requires grad.
    """
    if input.requires_grad:
        raise TypeError("apply_() and map_() cannot be recorded; call them on detach()")
    array, others = input._array, np.broadcast_to(tensor._array, input.shape)
    for index in np.ndindex(array.shape):
        array[index] = callable(array[index].item(), others[index].item())
    input._counter[0] += 1
    return input
