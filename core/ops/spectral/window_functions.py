"""Window functions: what a stretch of a signal is multiplied with, so that its ends fade out."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt

from ...dtypes import get_default_dtype
from ...tensors import Tensor
from ...types import Array
from ..create.from_data import finish
from ..table.operation import operation

HANN = (0.5, 0.5)
BLACKMAN = (0.42, 0.5, 0.08)


def cosine_sum(t: Array, weights: Iterable[float]) -> Array:
    """Return Σ (-1)^i weights[i] cos(2πi·t); ``t`` goes from 0 to 1."""
    angle = 2 * np.pi * t
    return np.asarray(sum((-1) ** i * weight * np.cos(i * angle) for i, weight in enumerate(weights)))


def triangle(t: Array) -> Array:
    """Return a line from 0 at the ends to 1 in the middle."""
    return 1 - np.abs(2 * t - 1)


def bessel(t: Array, beta: float) -> Array:
    """Return I0(beta √(1 - x²)) / I0(beta); x goes from -1 to 1 (J. Kaiser 1974)."""
    return np.i0(beta * np.sqrt(np.maximum(1 - (2 * t - 1) ** 2, 0))) / np.i0(beta)


@operation(function=True)
def hann_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: npt.DTypeLike | None = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """One arch of a cosine; ``periodic`` leaves out the last of ``window_length + 1`` points.

    Args:
        window_length: number of elements.
        periodic: whether it is one period, for spectra; else it is symmetric.
        dtype: a floating-point dtype; the default one by default.
        device: ``None`` or "cpu".
        requires_grad: whether operations on the result are recorded.
    """
    return _window(lambda t: cosine_sum(t, HANN), window_length, periodic, dtype, device, requires_grad)


@operation(function=True)
def hamming_window(
    window_length: int,
    periodic: bool = True,
    alpha: float = 0.54,
    beta: float = 0.46,
    *,
    dtype: npt.DTypeLike | None = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return ``alpha - beta * cos``: an arch that does not quite come down to 0.

    Args:
        window_length: number of elements.
        periodic: whether it is one period, for spectra; else it is symmetric.
        alpha: the constant.
        beta: height of the cosine.
        dtype: a floating-point dtype; the default one by default.
        device: ``None`` or "cpu".
        requires_grad: whether operations on the result are recorded.
    """
    return _window(lambda t: cosine_sum(t, (alpha, beta)), window_length, periodic, dtype, device, requires_grad)


@operation(function=True)
def blackman_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: npt.DTypeLike | None = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return an arch of two cosines, which fades out more smoothly.

    Args:
        window_length: number of elements.
        periodic: whether it is one period, for spectra; else it is symmetric.
        dtype: a floating-point dtype; the default one by default.
        device: ``None`` or "cpu".
        requires_grad: whether operations on the result are recorded.
    """
    return _window(
        lambda t: cosine_sum(t, BLACKMAN),
        window_length,
        periodic,
        dtype,
        device,
        requires_grad,
    )


@operation(function=True)
def bartlett_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: npt.DTypeLike | None = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return a triangle.

    Args:
        window_length: number of elements.
        periodic: whether it is one period, for spectra; else it is symmetric.
        dtype: a floating-point dtype; the default one by default.
        device: ``None`` or "cpu".
        requires_grad: whether operations on the result are recorded.
    """
    return _window(triangle, window_length, periodic, dtype, device, requires_grad)


@operation(function=True)
def kaiser_window(
    window_length: int,
    periodic: bool = True,
    beta: float = 12.0,
    *,
    dtype: npt.DTypeLike | None = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return a Bessel function; the larger ``beta``, the narrower.

    Args:
        window_length: number of elements.
        periodic: whether it is one period, for spectra; else it is symmetric.
        beta: the larger, the narrower.
        dtype: a floating-point dtype; the default one by default.
        device: ``None`` or "cpu".
        requires_grad: whether operations on the result are recorded.
    """
    return _window(
        lambda t: bessel(t, beta),
        window_length,
        periodic,
        dtype,
        device,
        requires_grad,
    )


def _window(
    shape: Callable[[Array], Array],
    length: int,
    periodic: bool,
    dtype: npt.DTypeLike | None,
    device: str | None,
    requires_grad: bool,
) -> Tensor:
    if length < 0:
        raise ValueError(f"a window needs a length that is not negative, and you gave {length}")
    steps = length if periodic else length - 1
    values = np.ones(length) if length <= 1 else shape(np.arange(length) / steps)
    return finish(values.astype(dtype or get_default_dtype()), requires_grad, device)
