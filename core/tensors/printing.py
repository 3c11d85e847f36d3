"""Tensors as text: printed as PyTorch prints them, summarised beyond a thousand elements."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..dtypes import complex_type, get_default_dtype, is_floating
from ..types import Array

__all__ = ["set_printoptions"]


@dataclass(frozen=True)
class Options:
    """The settings of ``set_printoptions``."""

    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


PROFILES = {
    "default": Options(),
    "short": Options(precision=2, edgeitems=2),
    "full": Options(threshold=math.inf),
}
_options = Options()


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Choose how tensors are printed, in the whole process.

    Args:
        precision: digits after the point (4).
        threshold: tensors of more elements are summarised (1000).
        edgeitems: how many elements at each end of a dimension a summary shows (3).
        linewidth: characters in a line (80).
        profile: "default", "short" or "full": values for the settings that are not given.
        sci_mode: whether numbers have exponents; ``None`` for where it is needed.

    Raises:
        ValueError: there is no such profile.
    """
    global _options
    if profile is not None and profile.lower() not in PROFILES:
        raise ValueError(f"the profile must be one of {', '.join(PROFILES)}, and you gave {profile!r}")
    options = _options if profile is None else PROFILES[profile.lower()]
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    _options = replace(options, sci_mode=sci_mode, **changes)


def describe(kind: str, array: Array, history: str) -> str:
    """Return the text ``kind([...], dtype=..., history)``; the dtype only where it is not the usual one.

    Args:
        kind: the name of the tensor's class; "Tensor" is printed as "tensor".
        array: the elements.
        history: what autograd knows of the tensor, such as "requires_grad=True"; may be empty.
    """
    kind = "tensor" if kind == "Tensor" else kind
    indent = len(kind) + 1
    text = f"{kind}({_contents(array, indent)}"
    line = len(text) - text.rfind("\n") + 1
    for suffix in [*_suffixes(array), *([history] if history else [])]:
        if line + len(suffix) + 2 > _options.linewidth:
            text += ",\n" + " " * indent + suffix
            line = indent + len(suffix)
        else:
            text += ", " + suffix
            line += len(suffix) + 2
    return text + ")"


def _suffixes(array: Array) -> list[str]:
    usual = get_default_dtype()
    suffixes = []
    if not array.size and array.ndim != 1:
        suffixes.append(f"size={array.shape}")
    if array.dtype not in ((usual, complex_type(usual), np.int64, np.bool_) if array.size else (usual,)):
        suffixes.append(f"dtype={array.dtype}")
    return suffixes


def _contents(array: Array, indent: int) -> str:
    if not array.size:
        return "[]"
    summarised = array.size > _options.threshold
    shown = _edges(array) if summarised else array
    if array.dtype.kind == "c":
        return _nested(array, indent, summarised, ComplexFormat(shown))
    return _nested(array, indent, summarised, Format(shown))


def _edges(array: Array) -> Array:
    """Return the elements that a summary shows."""
    edge = _options.edgeitems
    for axis, length in enumerate(array.shape):
        if length > 2 * edge:
            array = np.take(array, [*range(edge), *range(length - edge, length)], axis)
    return array


class Format:
    """Format of all elements of a tensor: of one width, with or without exponents."""

    def __init__(self, values: Array) -> None:
        self.floating = is_floating(values.dtype)
        self.whole, self.exponents, self.width = True, False, 1
        if self.floating:
            self._fit(values.astype(np.float64).reshape(-1))
        else:
            self.width = max(len(str(value)) for value in values.reshape(-1).tolist())

    def _fit(self, values: Array) -> None:
        values = values[np.isfinite(values) & (values != 0)]
        if not values.size:
            return
        low, high = float(np.abs(values).min()), float(np.abs(values).max())
        self.whole = bool((values == np.ceil(values)).all())
        self.exponents = high / low > 1000 or high > 1e8 or (not self.whole and low < 1e-4)
        if _options.sci_mode is not None:
            self.exponents = _options.sci_mode
        # Whole numbers have a point behind them.
        extra = 1 if self.whole and not self.exponents else 0
        self.width = max(len(self._bare(value)) + extra for value in values.tolist())

    def _bare(self, value: float) -> str:
        if self.exponents:
            return f"{value:.{_options.precision}e}"
        return f"{value:.0f}" if self.whole else f"{value:.{_options.precision}f}"

    def __call__(self, value: Any) -> str:
        """Return one element as text."""
        if not self.floating:
            return str(value).rjust(self.width)
        text = self._bare(value)
        if self.whole and not self.exponents and math.isfinite(value):
            text += "."
        return text.rjust(self.width)


class ComplexFormat:
    """Format of complex numbers: of both parts."""

    def __init__(self, values: Array) -> None:
        self.real, self.imag = Format(values.real), Format(values.imag)
        self.width = self.real.width + self.imag.width + 1

    def __call__(self, value: complex) -> str:
        """Return one element as text."""
        imag = (self.imag(value.imag) + "j").lstrip()
        return self.real(value.real) + (imag if imag[0] in "+-" else "+" + imag)


def _nested(array: Array, indent: int, summarised: bool, form: Format | ComplexFormat) -> str:
    if not array.ndim:
        return form(_plain(array))
    if array.ndim == 1:
        return _row(array, indent, summarised, form)
    edge = _options.edgeitems
    parts: list[Any] = list(array)
    if summarised and len(array) > 2 * edge:
        parts = [*array[:edge], None, *array[len(array) - edge :]]
    texts = ["..." if part is None else _nested(part, indent + 1, summarised, form) for part in parts]
    return "[" + ("," + "\n" * (array.ndim - 1) + " " * (indent + 1)).join(texts) + "]"


def _row(row: Array, indent: int, summarised: bool, form: Format | ComplexFormat) -> str:
    edge = _options.edgeitems
    if summarised and len(row) > 2 * edge:
        tail = row[len(row) - edge :]
        texts = [*(form(_plain(value)) for value in row[:edge]), " ...", *(form(_plain(value)) for value in tail)]
    else:
        texts = [form(_plain(value)) for value in row]
    count = max(1, (_options.linewidth - indent) // (form.width + 2))
    lines = [", ".join(texts[start : start + count]) for start in range(0, len(texts), count)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def _plain(value: Any) -> Any:
    value = np.asarray(value)
    return float(value) if is_floating(value.dtype) else value.item()
