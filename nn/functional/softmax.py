"""Softmax and its relatives, and gated linear units: functions along one dimension."""
# ruff: noqa: A002 - PyTorch names its arguments so

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

from ... import core
from ...core.extend import ARRAYS, Row, Tensor, keep, operation, record, records
from .activation import floats, in_dtype_of

__all__ = ["glu", "gumbel_softmax", "log_softmax", "softmax", "softmin"]


@operation
def glu(input: Tensor, dim: int = -1) -> Tensor:
    """Return ``first * sigmoid(second)`` of the two halves of ``input`` along ``dim`` (Dauphin et al. 2017).

    Args:
        input: floating-point, of even length along ``dim``.
        dim: dimension that is halved.

    Returns:
        The input's shape with half the length along ``dim``.

    Raises:
        TypeError: the input is not floating-point.
        ValueError: that dimension has an odd length.
    """
    if not input.ndim or input.size(dim) % 2:
        raise ValueError(f"dim {dim} must have an even length, and the input has shape {input.shape}")
    axis = dim % input.ndim
    first, second = _halves(ARRAYS, floats(input), axis)
    share = ARRAYS.sigmoid(second)
    result = in_dtype_of(input, first * share)
    return record(_GLU, result, (input,), (keep(input),), axis, share) if records(input) else result


def _halves(xp: Any, x: Any, axis: int) -> tuple[Any, Any]:
    before, half = (slice(None),) * axis, x.shape[axis] // 2
    return xp.get(x, (*before, slice(half))), xp.get(x, (*before, slice(half, None)))


def _glu_rule(xp: Any, g: Any, a: Any, axis: int, forward: Any) -> Any:
    first, second = _halves(xp, a, axis)
    share = forward if xp is ARRAYS else xp.sigmoid(second)
    passed = g * share
    return xp.concatenate([passed, passed * first * (1 - share)], axis)


_GLU = Row("glu", _glu_rule)


def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: npt.DTypeLike | None = None) -> Tensor:
    """Return ``exp(input) / sum(exp(input))`` along ``dim``, without overflow.

    Args:
        input: any shape.
        dim: the dimension; leaving it out is deprecated.
        dtype: converts the input first.

    Returns:
        The input's shape, floating-point.

    Raises:
        IndexError: there is no such dimension.
    """
    return core.softmax(input, _given_dim("softmax", dim, input, _stacklevel), dtype)


def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: npt.DTypeLike | None = None) -> Tensor:
    """Return ``softmax(-input)`` along ``dim``.

    Args:
        input: any shape.
        dim: the dimension; leaving it out is deprecated.
        dtype: converts the input first.

    Returns:
        The input's shape, floating-point.

    Raises:
        IndexError: there is no such dimension.
    """
    return core.softmax(-input, _given_dim("softmin", dim, input, _stacklevel), dtype)


def log_softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: npt.DTypeLike | None = None
) -> Tensor:
    """Return ``input - log(sum(exp(input)))`` along ``dim``: the logarithm of ``softmax``, precise where that is tiny.

    Args:
        input: any shape.
        dim: the dimension; leaving it out is deprecated.
        dtype: converts the input first.

    Returns:
        The input's shape, floating-point.

    Raises:
        IndexError: there is no such dimension.
    """
    return core.log_softmax(input, _given_dim("log_softmax", dim, input, _stacklevel), dtype)


def _given_dim(name: str, dim: int | None, input: Tensor, stacklevel: int) -> int:
    if dim is not None:
        return dim
    chosen = 0 if input.ndim in (0, 1, 3) else 1
    warnings.warn(f"{name}() without dim is deprecated; write dim={chosen} to keep what it does", stacklevel=stacklevel)
    return chosen


def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """Return ``softmax((logits + noise) / tau)``: differentiable samples of categories (Jang et al. 2017).

    The noise has Gumbel's distribution.

    Args:
        logits: unnormalized log-probabilities along ``dim``, floating-point.
        tau: temperature: the lower, the closer the samples are to one category.
        hard: whether samples are one-hot, with the gradients of the soft ones.
        eps: not used, as in PyTorch.
        dim: dimension of the categories.

    Returns:
        The shape of ``logits``.
    """
    noise = core.rand_like(logits).numpy()
    # -log of an exponentially distributed number, which must not be 0.
    limits = core.finfo(noise.dtype)
    drawn = -np.log(-np.log1p(-np.minimum(noise, 1 - limits.eps / 2)) + limits.tiny)
    gumbels = Tensor(np.asarray(drawn, noise.dtype))
    soft = core.softmax((logits + gumbels) / tau, dim)
    if not hard:
        return soft
    winners = soft.detach().argmax(dim, keepdim=True).numpy()
    one_hot = np.zeros(soft.shape, soft.dtype)
    np.put_along_axis(one_hot, winners, 1, dim)
    return Tensor(one_hot) - soft.detach() + soft
