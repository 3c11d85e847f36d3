"""New tensors of random numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ...constants import strided
from ...devices import check_device
from ...dtypes import complex_type, get_default_dtype, is_inexact, real_type
from ...random import Generator, default_generator
from ...shapes import to_shape
from ...tensors import Tensor
from ...types import Array
from ..create.from_data import finish
from ..table.operation import operation


@operation(function=True)
def rand(
    *lengths: Any,
    size: Sequence[int] | None = None,
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: npt.DTypeLike | None = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return random numbers of the uniform distribution on [0, 1), of shape ``lengths`` or ``size``.

    Complex numbers have real and imaginary parts of this distribution.

    Args:
        *lengths: the lengths of the dimensions, one by one or as one tuple.
        size: the same as a tuple.
        generator: source of random numbers; the default one if ``None``.
        out: where the result is written.
        dtype: dtype of the result; the default dtype if ``None``.
        device: ``None`` or "cpu".
        requires_grad: whether operations on the result are recorded.
    """
    return finish(floats("random", to_shape(lengths, size), generator, dtype), requires_grad, device)


@operation(function=True)
def randn(
    *lengths: Any,
    size: Sequence[int] | None = None,
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: npt.DTypeLike | None = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return random numbers of the standard normal distribution, of shape ``lengths`` or ``size``.

    The mean is 0 and the variance 1. Real and imaginary parts of complex numbers have a variance of 1/2 each.

    Args:
        *lengths: the lengths of the dimensions, one by one or as one tuple.
        size: the same as a tuple.
        generator: source of random numbers; the default one if ``None``.
        out: where the result is written.
        dtype: dtype of the result; the default dtype if ``None``.
        device: ``None`` or "cpu".
        requires_grad: whether operations on the result are recorded.
    """
    return finish(floats("standard_normal", to_shape(lengths, size), generator, dtype), requires_grad, device)


@operation(function=True)
def randint(
    low: int,
    high: int | Sequence[int],
    size: Sequence[int] | None = None,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: npt.DTypeLike | None = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return random integers from ``low`` to below ``high``, all equally likely; ``randint(high, size)`` starts at 0.

    Args:
        low: smallest value; 0 if only one bound is given.
        high: bound above all values.
        size: the shape.
        generator: source of random numbers; the default one if ``None``.
        out: where the result is written.
        dtype: dtype of the result; ``int64`` if ``None``.
        device: ``None`` or "cpu".
        requires_grad: whether operations on the result are recorded.

    Raises:
        ValueError: ``high`` is not above ``low``.
    """
    if size is None:
        low, high, size = 0, low, high  # type: ignore[assignment]
    assert size is not None
    return finish(_integers("randint", low, high, to_shape((size,)), generator, dtype), requires_grad, device)


@operation(function=True)
def randint_like(
    input: Tensor,
    low: int,
    high: int | None = None,
    *,
    dtype: npt.DTypeLike | None = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return random integers from ``low`` to below ``high``, all equally likely, in the shape of ``input``.

    Args:
        input: the tensor that gives the shape and the default dtype.
        low: smallest value; 0 if only one bound is given.
        high: bound above all values.
        dtype: dtype of the result; that of ``input`` if ``None``.
        device: ``None`` or "cpu".
        requires_grad: whether operations on the result are recorded.

    Raises:
        ValueError: ``high`` is not above ``low``.
    """
    low, high = (0, low) if high is None else (low, high)
    drawn = _integers("randint_like", low, high, input.shape, None, dtype or input.dtype)
    return finish(drawn, requires_grad, device)


def _integers(name: str, low: int, high: Any, shape: tuple[int, ...], generator: Generator | None, dtype: Any) -> Array:
    if not isinstance(high, int) or high <= low:
        raise ValueError(f"{name}() needs low < high, and you gave {low} and {high}")
    drawn = (generator or default_generator).draw("integers", low, high, shape)
    return np.asarray(drawn).astype(dtype or np.int64, copy=False)


@operation(function=True)
def randperm(
    n: int,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: npt.DTypeLike | None = None,
    device: str | None = None,
) -> Tensor:
    """Return the integers from 0 to ``n - 1`` in random order, shape ``(n,)``.

    Args:
        n: the number of integers.
        generator: source of random numbers; the default one if ``None``.
        out: where the result is written.
        dtype: dtype of the result; ``int64`` if ``None``.
        device: ``None`` or "cpu".

    Raises:
        ValueError: ``n`` is negative.
    """
    if n < 0:
        raise ValueError(f"randperm() needs a number that is not negative, and you gave {n}")
    drawn = (generator or default_generator).draw("permutation", n)
    return finish(drawn.astype(dtype or np.int64, copy=False), False, device)


@operation(function=True)
def rand_like(
    input: Tensor, *, dtype: npt.DTypeLike | None = None, device: str | None = None, requires_grad: bool = False
) -> Tensor:
    """Return random numbers of the uniform distribution on [0, 1), in the shape of ``input``.

    Args:
        input: the tensor that gives the shape and the default dtype.
        dtype: dtype of the result; that of ``input`` if ``None``.
        device: ``None`` or "cpu".
        requires_grad: whether operations on the result are recorded.
    """
    return rand(input.shape, dtype=dtype or input.dtype, device=device, requires_grad=requires_grad)


@operation(function=True)
def randn_like(
    input: Tensor, *, dtype: npt.DTypeLike | None = None, device: str | None = None, requires_grad: bool = False
) -> Tensor:
    """Return random numbers of the standard normal distribution, in the shape of ``input``.

    Args:
        input: the tensor that gives the shape and the default dtype.
        dtype: dtype of the result; that of ``input`` if ``None``.
        device: ``None`` or "cpu".
        requires_grad: whether operations on the result are recorded.
    """
    return randn(input.shape, dtype=dtype or input.dtype, device=device, requires_grad=requires_grad)


@operation(function=True)
def normal(
    mean: Tensor | float = 0.0,
    std: Tensor | float = 1.0,
    size: Sequence[int] | None = None,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: npt.DTypeLike | None = None,
    layout: str = strided,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return random numbers of the normal distribution, one for each element of ``mean`` and ``std``, broadcast.

    Args:
        mean: the mean: a tensor or a number.
        std: the standard deviation: a tensor or a number, not negative.
        size: the shape, if ``mean`` and ``std`` are numbers.
        generator: source of random numbers; the default one if ``None``.
        out: where the result is written.
        dtype: dtype of the result; by default that of the tensors, else the default dtype.
        layout: ``strided``.
        device: ``None`` or "cpu".
        requires_grad: whether operations on the result are recorded.

    Raises:
        TypeError: ``mean`` and ``std`` are numbers, and ``size`` is ``None``.
        ValueError: a standard deviation is negative.
    """
    check_device(device)
    parts = [each._array for each in (mean, std) if isinstance(each, Tensor)]
    if not parts and size is None:
        raise TypeError("normal() needs a size if mean and std are numbers")
    shape = to_shape((size,)) if size is not None else np.broadcast_shapes(*(part.shape for part in parts))
    kind = np.result_type(*parts) if parts and dtype is None else np.dtype(dtype or get_default_dtype())
    centre, scale = (each._array if isinstance(each, Tensor) else each for each in (mean, std))
    if np.any(np.asarray(scale) < 0):
        raise ValueError(f"normal() needs a standard deviation that is not negative, and you gave {std}")
    drawn = floats("standard_normal", shape, generator, kind) * scale + centre
    return finish(np.asarray(drawn, kind), requires_grad, device)


@operation(method=True)
def bernoulli(
    input: Tensor, p: float | None = None, *, generator: Generator | None = None, out: Tensor | None = None
) -> Tensor:
    """Return random numbers of the Bernoulli distribution: 1 with the probability in ``input``, else 0; not differentiable.

    Args:
        input: probabilities, floating-point.
        p: one probability for all elements, instead of ``input``.
        generator: source of random numbers; the default one if ``None``.
        out: where the result is written.

    Raises:
        TypeError: ``input`` does not hold floating-point numbers.
        ValueError: a probability is not between 0 and 1.
    """
    chances = input._array if p is None else np.full(input.shape, p)
    if p is None and not is_inexact(chances.dtype):
        raise TypeError(f"bernoulli() takes probabilities, floating-point numbers, and you gave {input.dtype}")
    if not ((chances >= 0) & (chances <= 1)).all():
        raise ValueError("bernoulli() takes probabilities between 0 and 1, and you gave other numbers")
    drawn = np.asarray((generator or default_generator).draw("random", chances.shape) < chances)
    return finish(drawn.astype(input.dtype), False, None)


@operation(function=True)
def poisson(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Return random numbers of the Poisson distribution with the rates ``input``, in its dtype; not differentiable.

    Raises:
        ValueError: a rate is negative.
    """
    rates = input._array.astype(np.float64)
    if not (rates >= 0).all():
        raise ValueError("poisson() takes rates that are not negative, and you gave a negative one or nan")
    return Tensor(np.asarray((generator or default_generator).draw("poisson", rates)).astype(input.dtype))


@operation(method=True)
def multinomial(
    input: Tensor,
    num_samples: int,
    replacement: bool = False,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Return random indices; the probability of an index is proportional to the element of ``input`` there.

    Args:
        input: weights, shape ``(n,)`` or ``(rows, n)``.
        num_samples: number of indices to draw for each row.
        replacement: whether an index may be drawn more than once.
        generator: source of random numbers; the default one if ``None``.
        out: where the result is written.

    Returns:
        ``int64``, shape ``(num_samples,)`` or ``(rows, num_samples)``.

    Raises:
        ValueError: weights are negative, not finite or all 0, or fewer than ``num_samples`` may be drawn.
    """
    weights = input._array.astype(np.float64)
    if weights.ndim not in (1, 2) or num_samples <= 0:
        raise ValueError(f"multinomial() needs 1 or 2 dimensions and samples, not {input.shape} and {num_samples}")
    if not (np.isfinite(weights) & (weights >= 0)).all() or not weights.sum(-1).all():
        raise ValueError("multinomial() needs weights that are finite, not negative, and not all 0 in a row")
    if not replacement and (fewest := int((weights > 0).sum(-1).min(initial=weights.shape[-1]))) < num_samples:
        raise ValueError(f"multinomial() cannot draw {num_samples} of {fewest} without replacement")
    draw = (generator or default_generator).draw
    if replacement:
        drawn = _with_replacement(weights, draw("random", (*weights.shape[:-1], num_samples)))
    else:
        # Exponential variables with these rates; the smallest come first (Efraimidis and Spirakis 2006).
        with np.errstate(divide="ignore"):
            arrivals = draw("standard_exponential", weights.shape) / weights
        drawn = np.argsort(arrivals, -1)[..., :num_samples]
    return finish(drawn.astype(np.int64, copy=False), False, None)


def _with_replacement(weights: Array, shares: Array) -> Array:
    bounds = np.cumsum(weights, -1)
    wanted = shares * bounds[..., -1:]
    if weights.ndim == 1:
        return np.asarray(np.searchsorted(bounds, wanted, "right"))
    rows = [np.searchsorted(*row, "right") for row in zip(bounds, wanted)]
    return np.stack(rows) if rows else np.zeros(wanted.shape, np.int64)


def floats(method: str, shape: tuple[int, ...], generator: Generator | None, dtype: Any) -> Array:
    """Return random numbers of shape ``shape`` and ``dtype`` (``None``: the default dtype), drawn by ``generator.method``."""
    wanted = np.dtype(dtype or get_default_dtype())
    if wanted.kind == "c":
        parts = floats(method, (*shape, 2), generator, real_type(wanted))
        scale = 1 if method == "random" else np.sqrt(0.5)
        return np.asarray((parts * parts.dtype.type(scale)).view(complex_type(parts.dtype))[..., 0])
    native = wanted if wanted in (np.float32, np.float64) else np.dtype(np.float64)
    drawn = (generator or default_generator).draw(method, shape, dtype=native)
    return np.asarray(drawn).astype(wanted, copy=False)
