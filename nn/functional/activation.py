"""Element-wise activations, and softmax."""
# ruff: noqa: A002 - PyTorch names its arguments so

from __future__ import annotations

import warnings

import numpy as np
import numpy.typing as npt

from ... import core
from ...core import sigmoid, tanh
from ...core.extend import Row, Tensor, keep, keep_result, record, records

__all__ = ["log_softmax", "logsigmoid", "relu", "relu_", "sigmoid", "softmax", "softplus", "tanh"]

# exp(a - softplus(a)) is sigmoid(a), and overflows nowhere.
_SOFTPLUS = Row("softplus", lambda xp, g, a, out: g * xp.exp(a - out))


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """``max(input, 0)``; its gradient at 0 is 0."""
    return input.relu_() if inplace else core.relu(input)


def relu_(input: Tensor) -> Tensor:
    """``relu`` in place."""
    return input.relu_()


def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: npt.DTypeLike | None = None) -> Tensor:
    """``exp(input)`` divided by its sum along ``dim``."""
    return core.softmax(input, _given_dim("softmax", dim, input, _stacklevel), dtype)


def log_softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: npt.DTypeLike | None = None
) -> Tensor:
    """The logarithm of ``softmax``, precise where that is tiny."""
    return core.log_softmax(input, _given_dim("log_softmax", dim, input, _stacklevel), dtype)


def _given_dim(name: str, dim: int | None, input: Tensor, stacklevel: int) -> int:
    if dim is not None:
        return dim
    chosen = 0 if input.ndim in (0, 1, 3) else 1
    warnings.warn(f"{name}() without dim is deprecated; write dim={chosen} to keep what it does", stacklevel=stacklevel)
    return chosen


def softplus(input: Tensor) -> Tensor:
    """``log(1 + exp(input))``, without overflow."""
    result = Tensor(np.logaddexp(np.zeros((), input.dtype), input.numpy(force=True)))
    return record(_SOFTPLUS, result, (input,), (keep(input), keep_result(result))) if records(input) else result


def logsigmoid(input: Tensor) -> Tensor:
    """``log(sigmoid(input))``, precise where that is tiny."""
    return -softplus(-input)
