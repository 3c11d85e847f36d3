"""Complex numbers: constructing them, their parts, conjugates and views as pairs of real numbers.

Gradients follow PyTorch: the gradient of a real result with respect to a complex input is the derivative with respect to the
real part plus ``i`` times the derivative with respect to the imaginary part.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...dtypes import complex_type, real_type, to_float
from ...tensors import Tensor
from ...types import Array
from ..table.nodes import keep, keep_result, record, record_fitted, records
from ..table.operation import operation, published
from ..table.rows import Row
from ..table.views import view_of
from .conversion import to


def _angle_rule(xp: Any, g: Any, a: Any) -> Any:
    if a.dtype.kind != "c":
        return xp.zeros_like(g)
    square = xp.real(a * xp.conj(a))
    return a * (g * 1j) / xp.where(square == 0, np.inf, square)


def _pairs(x: Array) -> Array:
    return x.view(real_type(x.dtype)).reshape(*x.shape, 2) if x.flags.c_contiguous and x.ndim else _strided_pairs(x)


def _strided_pairs(x: Array) -> Array:
    width = x.dtype.itemsize // 2
    return np.lib.stride_tricks.as_strided(x.real, (*x.shape, 2), (*x.strides, width))


_ANGLE = Row("angle", _angle_rule)
_CONJ = Row("conj", lambda xp, g: xp.conj(g), holomorphic=False)
_REAL = Row("real", lambda xp, g: xp.to_complex(g), view=lambda x: x.real)
_IMAG = Row("imag", lambda xp, g: xp.to_complex(g) * 1j, view=lambda x: x.imag)
_AS_REAL = Row("view_as_real", lambda xp, g: xp.get(g, (..., 0)) + xp.get(g, (..., 1)) * 1j, view=_pairs)
_AS_COMPLEX = Row(
    "view_as_complex",
    lambda xp, g: xp.pairs(g),
    view=lambda x: x.view(complex_type(x.dtype))[..., 0],
    holomorphic=False,
)
_COMPLEX = Row("complex", lambda xp, g: xp.real(g), lambda xp, g: xp.imag(g), holomorphic=False)
_POLAR = Row(
    "polar",
    lambda xp, g, angle, out: xp.real(g) * xp.cos(angle) + xp.imag(g) * xp.sin(angle),
    lambda xp, g, angle, out: xp.imag(g) * xp.real(out) - xp.real(g) * xp.imag(out),
    holomorphic=False,
)


@published(function=True)
def is_complex(input: Tensor) -> bool:
    """Return whether the elements are complex numbers."""
    return input._array.dtype.kind == "c"


@operation(method=True)
def conj(input: Tensor) -> Tensor:
    """Return the complex conjugate; a real tensor is returned itself."""
    if input._array.dtype.kind != "c":
        return input
    result = Tensor(np.conj(input._array))
    return record(_CONJ, result, (input,), ()) if records(input) else result


@operation(method=True, in_place="overwrite")
def conj_physical(input: Tensor) -> Tensor:
    """Return ``conj(input)``; conjugates are always computed at once here."""
    return conj(input)


@operation(method=True)
def resolve_conj(input: Tensor) -> Tensor:
    """Return the tensor itself: conjugates are always computed at once here."""
    return input


@operation(function=True, property="real")
def real(input: Tensor) -> Tensor:
    """Return the real part, a view; a real tensor is returned itself."""
    return input if input._array.dtype.kind != "c" else view_of(input, input._array.real, _REAL, ())


@operation(function=True, property="imag")
def imag(input: Tensor) -> Tensor:
    """Return the imaginary part, a view.

    Raises:
        TypeError: the tensor is real.
    """
    if input._array.dtype.kind != "c":
        raise TypeError(f"imag() takes a complex tensor, and this one is {input.dtype}")
    return view_of(input, input._array.imag, _IMAG, ())


@operation(method=True)
def angle(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the angle of complex numbers in radians; of real numbers 0 or pi, and nan for nan."""
    x = to_float(input._array)
    real_angle = x.dtype.kind != "c"
    result = Tensor(np.where(np.isnan(x), x, np.where(x < 0, np.pi, 0)).astype(x.dtype) if real_angle else np.angle(x))
    if records(input):
        record(_ANGLE, result, (input,), (keep(input),))
    return result


@operation(function=True)
def view_as_real(input: Tensor) -> Tensor:
    """Return a real view of shape ``(*input.shape, 2)``; the last dimension holds (real, imaginary).

    Raises:
        TypeError: the tensor is real.
    """
    if input._array.dtype.kind != "c":
        raise TypeError(f"view_as_real() takes a complex tensor, and this one is {input.dtype}")
    return view_of(input, _pairs(input._array), _AS_REAL, ())


@operation(function=True)
def view_as_complex(input: Tensor) -> Tensor:
    """Return a complex view of shape ``input.shape[:-1]``; the last dimension of ``input`` holds (real, imaginary).

    Raises:
        ValueError: the last dimension is not of two floating-point numbers next to each other in memory.
    """
    x = input._array
    if x.ndim == 0 or x.shape[-1] != 2 or (x.size and x.strides[-1] != x.itemsize) or x.dtype.kind != "f":
        raise ValueError(
            f"view_as_complex() needs a last dimension of two floating-point neighbours, and this is {x.dtype} "
            f"of shape {x.shape}"
        )
    return view_of(input, x.view(complex_type(x.dtype))[..., 0], _AS_COMPLEX, ())


@operation(function=True)
def complex(real: Tensor, imag: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return ``real + i * imag``, broadcast.

    Args:
        real: the real parts, floating-point.
        imag: the imaginary parts, of the same dtype.
        out: where the result is written.

    Raises:
        TypeError: the parts are not floating-point numbers of one dtype.
    """
    if real.dtype != imag.dtype or real.dtype.kind != "f":
        raise TypeError(
            f"complex() needs two floating-point tensors of one dtype, and you gave {real.dtype} and {imag.dtype}"
        )
    shape = np.broadcast_shapes(real.shape, imag.shape)
    parts = np.empty(shape, complex_type(real.dtype))
    parts.real, parts.imag = real._array, imag._array
    return record_fitted(_COMPLEX, Tensor(parts), (real, imag), ())


@operation(function=True)
def polar(abs: Tensor, angle: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return ``abs * exp(i * angle)``, broadcast.

    Args:
        abs: the absolute values, floating-point.
        angle: the angles in radians, of the same dtype.
        out: where the result is written.

    Raises:
        TypeError: the arguments are not floating-point numbers of one dtype.
    """
    if abs.dtype != angle.dtype or abs.dtype.kind != "f":
        raise TypeError(
            f"polar() needs two floating-point tensors of one dtype, and you gave {abs.dtype} and {angle.dtype}"
        )
    x, y = abs._array, angle._array
    parts = np.empty(np.broadcast_shapes(x.shape, y.shape), complex_type(x.dtype))
    parts.real, parts.imag = x * np.cos(y), x * np.sin(y)
    result = Tensor(parts)
    saved = (keep(angle), keep_result(result))
    return record_fitted(_POLAR, result, (abs, angle), saved)


@published(function=False, method=True)
def chalf(input: Tensor, memory_format: Any = None) -> Tensor:
    """Return complex numbers with parts of the precision of float16; ``memory_format`` has no effect.

    NumPy has no complex numbers of two halves, so the dtype is ``complex64``.
    """
    parts = to(view_as_real(input) if input.dtype.kind == "c" else input, np.float16)
    return view_as_complex(to(parts, np.float32)) if input.dtype.kind == "c" else to(parts, np.complex64)


@published(method=True)
def resolve_neg(input: Tensor) -> Tensor:
    """Return the tensor itself: negations are always computed at once here."""
    return input
