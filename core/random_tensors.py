"""New tensors of random numbers, and the in-place fills that weights are initialised with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .creation import check_device, finish, to_shape
from .dtypes import get_default_dtype
from .random import Generator, default_generator
from .tensor import Tensor
from .types import Array

__all__ = ["rand", "rand_like", "randint", "randn", "randn_like", "randperm"]


def rand(
    *size: Any,
    generator: Generator | None = None,
    dtype: npt.DTypeLike | None = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Uniform in [0, 1), of shape ``size``."""
    return finish(floats("random", to_shape(size), generator, dtype), requires_grad, device)


def randn(
    *size: Any,
    generator: Generator | None = None,
    dtype: npt.DTypeLike | None = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Normal with mean 0 and variance 1, of shape ``size``."""
    return finish(floats("standard_normal", to_shape(size), generator, dtype), requires_grad, device)


def randint(
    low: int,
    high: int | Sequence[int],
    size: Sequence[int] | None = None,
    *,
    generator: Generator | None = None,
    dtype: npt.DTypeLike | None = None,
    device: str | None = None,
) -> Tensor:
    """Integers from ``low`` to below ``high``; ``randint(high, size)`` starts at 0.

    Raises:
        ValueError: ``high`` is not above ``low``.
    """
    check_device(device)
    if size is None:
        low, high, size = 0, low, high  # type: ignore[assignment]
    assert size is not None
    if not isinstance(high, int) or high <= low:
        raise ValueError(f"randint() needs low < high, and you gave {low} and {high}")
    drawn = (generator or default_generator).draw("integers", low, high, to_shape((size,)))
    return Tensor(drawn.astype(dtype or np.int64, copy=False))


def randperm(
    n: int,
    *,
    generator: Generator | None = None,
    dtype: npt.DTypeLike | None = None,
    device: str | None = None,
) -> Tensor:
    """The integers below ``n`` in random order."""
    check_device(device)
    return Tensor((generator or default_generator).draw("permutation", n).astype(dtype or np.int64, copy=False))


def rand_like(input: Tensor, dtype: npt.DTypeLike | None = None, requires_grad: bool = False) -> Tensor:
    """``rand`` in the shape and dtype of ``input``."""
    return rand(input.shape, dtype=dtype or input.dtype, requires_grad=requires_grad)


def randn_like(input: Tensor, dtype: npt.DTypeLike | None = None, requires_grad: bool = False) -> Tensor:
    """``randn`` in the shape and dtype of ``input``."""
    return randn(input.shape, dtype=dtype or input.dtype, requires_grad=requires_grad)


def floats(method: str, shape: tuple[int, ...], generator: Generator | None, dtype: Any) -> Array:
    """Random numbers that the generator's ``method`` draws, of that shape and dtype (``None``: the default)."""
    wanted = np.dtype(dtype or get_default_dtype())
    native = wanted if wanted in (np.float32, np.float64) else np.dtype(np.float64)
    drawn = (generator or default_generator).draw(method, shape, dtype=native)
    return np.asarray(drawn).astype(wanted, copy=False)
