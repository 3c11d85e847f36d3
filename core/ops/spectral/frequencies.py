"""Frequencies of the elements of a spectrum, and their order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from ...dtypes import get_default_dtype
from ...tensors import Tensor
from ...types import Array
from ..create.from_data import finish
from ..shape.flipping import roll
from ..table.dims import all_dims
from ..table.operation import operation


@operation(function="fft.fftshift")
def fft_fftshift(input: Tensor, dim: Any = None) -> Tensor:
    """Return a spectrum with frequency 0 moved from the start to the middle of each of ``dim`` (all dimensions by default).

    Raises:
        IndexError: the tensor has no such dimension.
    """
    dims = all_dims(dim, input.ndim)
    return roll(input, [input.shape[axis] // 2 for axis in dims], dims)


@operation(function="fft.ifftshift")
def fft_ifftshift(input: Tensor, dim: Any = None) -> Tensor:
    """Return the inverse of ``fftshift``.

    Raises:
        IndexError: the tensor has no such dimension.
    """
    dims = all_dims(dim, input.ndim)
    return roll(input, [-(input.shape[axis] // 2) for axis in dims], dims)


@operation(function="fft.fftfreq")
def fftfreq(
    n: int,
    d: float = 1.0,
    *,
    out: Tensor | None = None,
    dtype: npt.DTypeLike | None = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return the frequencies of the elements of ``fft``: ``[0, 1, ..., -2, -1] / (n * d)``, shape ``(n,)``.

    Args:
        n: number of samples, 1 or more.
        d: distance between samples; the frequencies are in cycles per unit of ``d``.
        out: where the result is written.
        dtype: dtype of the result; the default dtype if ``None``.
        device: ``None`` or "cpu".
        requires_grad: whether operations on the result are recorded.

    Raises:
        ValueError: ``n`` is below 1.
    """
    return finish(_frequencies(np.fft.fftfreq, n, d, dtype), requires_grad, device)


@operation(function="fft.rfftfreq")
def rfftfreq(
    n: int,
    d: float = 1.0,
    *,
    out: Tensor | None = None,
    dtype: npt.DTypeLike | None = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return the frequencies of the elements of ``rfft``: ``[0, 1, ..., n // 2] / (n * d)``, shape ``(n // 2 + 1,)``.

    Args:
        n: number of samples, 1 or more.
        d: distance between samples; the frequencies are in cycles per unit of ``d``.
        out: where the result is written.
        dtype: dtype of the result; the default dtype if ``None``.
        device: ``None`` or "cpu".
        requires_grad: whether operations on the result are recorded.

    Raises:
        ValueError: ``n`` is below 1.
    """
    return finish(_frequencies(np.fft.rfftfreq, n, d, dtype), requires_grad, device)


def _frequencies(table: Callable[[int, float], Array], n: int, d: float, dtype: npt.DTypeLike | None) -> Array:
    if n < 1:
        raise ValueError(f"frequencies need at least one sample, and you gave n={n}")
    return np.asarray(table(n, d)).astype(dtype or get_default_dtype())
