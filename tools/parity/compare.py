"""Comparison of values with expected ones: kind, dtype, shape, and elements within the dtype's precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import telegrad as tg

from ...core.types import Array
from .unpacking import array_of

# Relative to the largest element, because both sides may add up in any order.
TOLERANCE = {"float64": 1e-7, "complex128": 1e-7, "float32": 5e-5, "complex64": 5e-5, "float16": 4e-3, "bfloat16": 3e-2}


def difference(ours: Any, expected: Any, shapes_only: bool = False) -> str | None:
    """Return how ``ours`` differs from packed ``expected``; ``None`` if it does not."""
    if not (isinstance(expected, tuple) and expected and expected[0] == "tensor"):
        return _plain(ours, expected)
    if not isinstance(ours, tg.Tensor):
        return f"{type(ours).__name__}, not a tensor"
    if ours.layout is not tg.strided:
        return f"{ours.layout}, not dense"
    array, wanted = ours.detach().numpy(), array_of(expected)
    if str(array.dtype) != expected[1]:
        return f"{array.dtype}, not {expected[1]}"
    if array.shape != wanted.shape:
        return f"shape {array.shape}, not {wanted.shape}"
    return None if shapes_only or not array.size else _elements(array, wanted)


def _plain(ours: Any, expected: Any) -> str | None:
    if isinstance(expected, str) and not isinstance(ours, str):  # a dtype or device
        ours = str(ours).removeprefix("torch.")
        expected = expected.removeprefix("torch.")
    if isinstance(expected, float) and isinstance(ours, float):
        same = bool(np.isclose(ours, expected, rtol=1e-5, equal_nan=True))
    else:
        same = type(ours) is type(expected) and ours == expected
    return None if same else f"{ours!r}, not {expected!r}"[:150]


def _elements(array: Array, wanted: Array) -> str | None:
    name = str(array.dtype)
    if name not in TOLERANCE:
        wrong = array != wanted
    else:
        wide = np.complex128 if array.dtype.kind == "c" else np.float64
        array, wanted = array.astype(wide), wanted.astype(wide)
        finite = np.abs(wanted[np.isfinite(wanted)])
        scale = max(float(finite.max()) if finite.size else 0.0, 1e-3)
        wrong = ~np.isclose(array, wanted, rtol=TOLERANCE[name], atol=TOLERANCE[name] * scale, equal_nan=True)
    if not wrong.any():
        return None
    first = tuple(int(axis[0]) for axis in np.nonzero(np.atleast_1d(wrong)))
    ours, theirs = np.atleast_1d(array)[first], np.atleast_1d(wanted)[first]
    return f"{int(wrong.sum())} of {wrong.size} elements, at {first} {ours} instead of {theirs}"
