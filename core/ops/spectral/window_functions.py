"""Window functions, which a segment of a signal is multiplied by so that it falls off towards its ends.

Formulas: F. Harris, "On the use of windows for harmonic analysis with the discrete Fourier transform", 1978.
"""

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
    """Return ``Σ (-1)^i weights[i] cos(2πi·t)``; ``t`` is from 0 to 1."""
    angle = 2 * np.pi * t
    return np.asarray(sum((-1) ** i * weight * np.cos(i * angle) for i, weight in enumerate(weights)))


def triangle(t: Array) -> Array:
    """Return ``1 - |2t - 1|``: 0 at ``t`` = 0 and 1, and 1 in the middle."""
    return 1 - np.abs(2 * t - 1)


def bessel(t: Array, beta: float) -> Array:
    """Return the Kaiser window ``I0(beta √(1 - x²)) / I0(beta)`` with x = 2t - 1; ``t`` is from 0 to 1 (J. Kaiser 1974)."""
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
    """Return the Hann window ``0.5 - 0.5 cos(2 pi n / N)``, shape ``(window_length,)``.

    Args:
        window_length: number of elements.
        periodic: whether N is ``window_length``, for spectra; if not, N is ``window_length - 1`` and the window is symmetric.
        dtype: a floating-point dtype; the default dtype if ``None``.
        device: ``None`` or "cpu".
        requires_grad: whether operations on the result are recorded.

    Raises:
        ValueError: ``window_length`` is negative.
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
    """Return the Hamming window ``alpha - beta cos(2 pi n / N)``, shape ``(window_length,)``.

    Args:
        window_length: number of elements.
        periodic: whether N is ``window_length``, for spectra; if not, N is ``window_length - 1`` and the window is symmetric.
        alpha: the constant.
        beta: the factor of the cosine.
        dtype: a floating-point dtype; the default dtype if ``None``.
        device: ``None`` or "cpu".
        requires_grad: whether operations on the result are recorded.

    Raises:
        ValueError: ``window_length`` is negative.
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
    """Return the Blackman window ``0.42 - 0.5 cos(2 pi n / N) + 0.08 cos(4 pi n / N)``, shape ``(window_length,)``.

    Args:
        window_length: number of elements.
        periodic: whether N is ``window_length``, for spectra; if not, N is ``window_length - 1`` and the window is symmetric.
        dtype: a floating-point dtype; the default dtype if ``None``.
        device: ``None`` or "cpu".
        requires_grad: whether operations on the result are recorded.

    Raises:
        ValueError: ``window_length`` is negative.
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
    """Return the Bartlett (triangular) window ``1 - abs(2 n / N - 1)``, shape ``(window_length,)``.

    Args:
        window_length: number of elements.
        periodic: whether N is ``window_length``, for spectra; if not, N is ``window_length - 1`` and the window is symmetric.
        dtype: a floating-point dtype; the default dtype if ``None``.
        device: ``None`` or "cpu".
        requires_grad: whether operations on the result are recorded.

    Raises:
        ValueError: ``window_length`` is negative.
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
    """Return the Kaiser window ``I0(beta sqrt(1 - (2 n / N - 1)**2)) / I0(beta)``, shape ``(window_length,)``.

    Args:
        window_length: number of elements.
        periodic: whether N is ``window_length``, for spectra; if not, N is ``window_length - 1`` and the window is symmetric.
        beta: the shape: a larger ``beta`` makes the window narrower.
        dtype: a floating-point dtype; the default dtype if ``None``.
        device: ``None`` or "cpu".
        requires_grad: whether operations on the result are recorded.

    Raises:
        ValueError: ``window_length`` is negative.
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
