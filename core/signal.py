"""Window functions (``torch.signal.windows``), which reduce a signal towards its ends.

Formulas: F. Harris, "On the use of windows for harmonic analysis with the discrete Fourier transform", 1978. Each is a
function of the index n = 0 .. M-1 of a symmetric window; a periodic one (``sym=False``) is the symmetric window of M + 1
elements without its last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

from .constants import strided
from .dtypes import float32, float64, get_default_dtype
from .ops.create.from_data import finish
from .ops.spectral.window_functions import BLACKMAN, HANN, bessel, cosine_sum, triangle
from .ops.table.operation import operation
from .tensors import Tensor
from .types import Array

__all__ = ["windows"]

Shape = Callable[..., Array]  # (indices, elements of the symmetric window, parameters) -> values

_DOCUMENTATION = """Return {summary}

    Args:
        M: the number of elements.{parameters}
        sym: whether the window is symmetric, for filters; else one period, for spectra.
        dtype: float32 or float64; the default dtype by default.
        layout: ``None`` or ``strided``.
        device: "cpu" or ``None``.
        requires_grad: whether operations on the tensor are recorded.

    Raises:
        ValueError: ``M`` is negative, another dtype or layout, or a parameter is out of range.
    """


def _window(name: str, shape: Shape, summary: str, **parameters: str) -> Callable[..., Tensor]:
    """Return the operation of one kind of window.

    Args:
        name: of the operation.
        shape: computes the elements.
        summary: the rest of the docstring's first line.
        **parameters: the window's own parameters, with their meaning.
    """

    def window(
        M: int,
        *,
        sym: bool = True,
        dtype: npt.DTypeLike | None = None,
        layout: Any = None,
        device: str | None = None,
        requires_grad: bool = False,
        **given: Any,
    ) -> Tensor:
        if unknown := given.keys() - parameters.keys():
            raise TypeError(f"{name}() has no parameter {', '.join(sorted(unknown))}; its own are {list(parameters)}")
        wanted = np.dtype(dtype or get_default_dtype())
        if M < 0 or wanted not in (float32, float64):
            raise ValueError(f"a window has M >= 0 elements of float32 or float64; you gave M={M} and {wanted}")
        if layout not in (None, strided):
            raise ValueError(f"a window is strided, and you gave layout={layout}")
        values = shape(np.arange(M, dtype=np.float64), M if sym else M + 1, **given) if M > 1 else np.ones(M)
        return finish(values.astype(wanted), requires_grad, device)

    listed = "".join(f"\n        {key}: {meaning}" for key, meaning in parameters.items())
    window.__name__ = window.__qualname__ = name
    window.__doc__ = _DOCUMENTATION.format(summary=summary, parameters=listed)
    return operation(window)


def _general_cosine(n: Array, size: int, a: Iterable[float]) -> Array:
    weights = list(a)
    if not weights:
        raise ValueError("a must have at least one weight")
    return cosine_sum(n / (size - 1), weights)


def _general_hamming(n: Array, size: int, alpha: float = 0.54) -> Array:
    return cosine_sum(n / (size - 1), (alpha, 1 - alpha))


def _cosines(*weights: float) -> Shape:
    return lambda n, size: cosine_sum(n / (size - 1), weights)


def _bartlett(n: Array, size: int) -> Array:
    return triangle(n / (size - 1))


def _cosine(n: Array, size: int) -> Array:
    return np.sin(np.pi * (n + 0.5) / size)


def _exponential(n: Array, size: int, center: float | None = None, tau: float = 1.0) -> Array:
    if tau <= 0:
        raise ValueError(f"tau must be above 0, and you gave {tau}")
    if center is not None and size == len(n):
        raise ValueError(f"a symmetric window has its peak in the middle, and you gave center={center}; give sym=False")
    return np.exp(-np.abs(n - ((size - 1) / 2 if center is None else center)) / tau)


def _gaussian(n: Array, size: int, std: float = 1.0) -> Array:
    if std <= 0:
        raise ValueError(f"std must be above 0, and you gave {std}")
    return np.exp(-(((n - (size - 1) / 2) / std) ** 2) / 2)


def _kaiser(n: Array, size: int, beta: float = 12.0) -> Array:
    if beta < 0:
        raise ValueError(f"beta must not be negative, and you gave {beta}")
    return bessel(n / (size - 1), beta)


_KINDS: list[tuple[str, Shape, str, dict[str, str]]] = [
    ("bartlett", _bartlett, "a triangle.", {}),
    ("blackman", _cosines(*BLACKMAN), "the sum of two cosines that is nearly 0 at the ends.", {}),
    ("cosine", _cosine, "half a period of a sine.", {}),
    (
        "exponential",
        _exponential,
        "exp(-|n - center| / tau).",
        {
            "center": "the peak, for sym=False; the middle by default.",
            "tau": "the number of elements in which it falls by a factor e.",
        },
    ),
    ("gaussian", _gaussian, "a bell: exp(-(n / std)² / 2), n from the middle.", {"std": "its standard deviation."}),
    (
        "general_cosine",
        _general_cosine,
        "a sum of cosines: Σ (-1)^i a[i] cos(2πi·n / (M - 1)).",
        {"a": "weights of 0, 1, 2, ... periods."},
    ),
    ("general_hamming", _general_hamming, "alpha - (1 - alpha) cos(2πn / (M - 1)).", {"alpha": "0.54 by default."}),
    ("hamming", _cosines(0.54, 0.46), "a period of a cosine that ends at 0.08.", {}),
    ("hann", _cosines(*HANN), "a period of a cosine that ends at 0.", {}),
    (
        "kaiser",
        _kaiser,
        "a Bessel function: I0(beta √(1 - x²)) / I0(beta).",
        {"beta": "the shape: larger values give a narrower window."},
    ),
    ("nuttall", _cosines(0.3635819, 0.4891775, 0.1365995, 0.0106411), "the sum of three cosines.", {}),
]
windows = SimpleNamespace(**{name: _window(name, shape, text, **own) for name, shape, text, own in _KINDS})
