"""Discrete Fourier transforms, ``torch.fft``: complex to complex, real to half of a complex spectrum, and back.

All are made of three linear maps without a scale of their own (Cooley and Tukey 1965; computed by NumPy's pocketfft):

* ``C2C``: y[k] = s · Σ x[n] exp(∓2πi·kn/N), along any dimensions; its adjoint has the other sign.
* ``R2C``: the same of real numbers; of the last dimension only the first N // 2 + 1 are kept, the others mirror them.
* ``C2R``: the inverse of that; the imaginary parts that a mirrored spectrum cannot have are ignored.

``norm`` chooses s, with N elements in all: "backward" 1/N in inverse transforms, "forward" 1/N in others, "ortho" 1/√N in all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...dtypes import to_float
from ...tensors import Tensor
from ...types import Array
from ..elementwise.complex_numbers import conj
from ..shape.joining import cat
from ..table.dims import all_dims, one_dim
from ..table.linear_map import LinearMap
from ..table.operation import operation

Dims = tuple[int, ...]
Lengths = Sequence[int] | None
_NORMS = ("backward", "ortho", "forward")


def _c2c(x: Array, dims: Dims, inverse: bool, scale: float) -> Array:
    spectrum = np.fft.ifftn(x, axes=dims, norm="forward") if inverse else np.fft.fftn(x, axes=dims)
    return spectrum * x.real.dtype.type(scale)


def _r2c(x: Array, dims: Dims, scale: float) -> Array:
    return np.fft.rfftn(x, axes=dims) * x.dtype.type(scale)


def _r2c_adjoint(g: Array, shape: Dims, dims: Dims, scale: float) -> Array:
    last = dims[-1]
    missing = list(g.shape)
    missing[last] = shape[last] - g.shape[last]
    whole = np.concatenate([g, np.zeros(missing, g.dtype)], last)
    return np.array(_c2c(whole, dims, True, scale).real)


def _c2r(x: Array, dims: Dims, length: int, scale: float) -> Array:
    lengths = [x.shape[dim] for dim in dims[:-1]] + [length]
    return np.fft.irfftn(x, lengths, dims, norm="forward") * x.real.dtype.type(scale)


def _c2r_adjoint(g: Array, shape: Dims, dims: Dims, length: int, scale: float) -> Array:
    spectrum = _r2c(g, dims, scale)
    mirrored = slice(1, length - length // 2)  # each of these stands for two elements of the whole spectrum
    spectrum[(slice(None),) * dims[-1] + (mirrored,)] *= 2
    return spectrum


C2C = LinearMap(
    "fft_c2c",
    _c2c,
    lambda g, shape, dims, inverse, scale: _c2c(g.astype(np.result_type(g, 1j)), dims, not inverse, scale),
)
R2C = LinearMap("fft_r2c", _r2c, _r2c_adjoint)
C2R = LinearMap("fft_c2r", _c2r, _c2r_adjoint)


# -- arguments


def _numbers(input: Tensor, *, real: bool = False) -> Tensor:
    """Return ``input`` as floating-point or complex numbers that NumPy transforms without conversion."""
    kind, width = input.dtype.kind, input.dtype.itemsize
    if real and kind == "c":
        raise TypeError(
            f"this transform takes real numbers, and the input is {input.dtype}; take its .real, or use fft"
        )
    if kind in "fV" and width < 4:
        raise TypeError(f"there is no transform of {input.dtype}; convert it, with input.float()")
    return input if kind in "fc" else input.to(to_float(np.empty(0, input.dtype)).dtype)


def _complex(input: Tensor) -> Tensor:
    numbers = _numbers(input)
    return numbers if numbers.dtype.kind == "c" else numbers.to(np.result_type(numbers.dtype, np.complex64))


def _scale(norm: str | None, lengths: Sequence[int], inverse: bool) -> float:
    norm = "backward" if norm is None else norm
    if norm not in _NORMS:
        raise ValueError(f"norm must be one of {', '.join(map(repr, _NORMS))}; you gave {norm!r}")
    count = math.prod(lengths)
    if norm == "ortho":
        return 1 / math.sqrt(count)
    return 1 / count if (norm == "backward") == inverse else 1.0


def _plan(input: Tensor, s: Lengths, dim: Any, spectrum: int | None = None) -> tuple[Dims, list[int]]:
    """Return the dimensions to transform, and how many elements each has then.

    Args:
        spectrum: what the last length is by default if the input is half of a spectrum; ``None`` if it is not.

    Raises:
        ValueError: not as many lengths as dimensions, or a length below 1.
    """
    lengths = None if s is None else [int(length) for length in s]
    if dim is None and lengths is not None:
        if len(lengths) > input.ndim:
            raise ValueError(f"s has {len(lengths)} lengths, and the input {input.ndim} dimensions")
        dims = tuple(range(input.ndim - len(lengths), input.ndim))
    else:
        dims = all_dims(dim, input.ndim) if dim is None or len(dim) else ()
    own = [input.shape[axis] for axis in dims]
    if spectrum is not None and own:
        own[-1] = spectrum
    if lengths is None:
        lengths = own
    if len(lengths) != len(dims):
        raise ValueError(f"s must have one length for each of dim={dims}; you gave {lengths}")
    lengths = [length if given == -1 else given for given, length in zip(lengths, own)]
    if any(length < 1 for length in lengths):
        raise ValueError(f"a transform needs at least one element in each dimension, and you asked for {lengths}")
    return dims, lengths


def _resized(x: Tensor, dims: Dims, lengths: Sequence[int]) -> Tensor:
    """Return ``x`` cut, or filled up with zeros at the end, to ``lengths`` along ``dims``."""
    for axis, length in zip(dims, lengths):
        present = x.shape[axis]
        if present > length:
            x = x.narrow(axis, 0, length)
        elif present < length:
            missing = [length - present if each == axis else size for each, size in enumerate(x.shape)]
            x = cat([x, x.new_zeros(missing)], axis)
    return x


def _half(lengths: Sequence[int]) -> list[int]:
    return [*lengths[:-1], lengths[-1] // 2 + 1]


def _one(input: Tensor, dim: int) -> tuple[int]:
    if not input.ndim:
        raise IndexError("a transform needs a tensor with dimensions, and this one is 0-d")
    return (one_dim(dim, input.ndim),)


def _some(dims: Dims) -> None:
    if not dims:
        raise ValueError("this transform needs at least one dimension, and you gave none")


# -- the kinds of transforms, along any dimensions


def _fft(input: Tensor, s: Lengths, dim: Any, norm: str | None, inverse: bool) -> Tensor:
    x = _complex(input)
    dims, lengths = _plan(x, s, dim)
    return C2C(_resized(x, dims, lengths), dims, inverse, _scale(norm, lengths, inverse)) if dims else x.clone()


def _rfft(input: Tensor, s: Lengths, dim: Any, norm: str | None, inverse: bool) -> Tensor:
    x = _numbers(input, real=True)
    dims, lengths = _plan(x, s, dim)
    _some(dims)
    result = R2C(_resized(x, dims, lengths), dims, _scale(norm, lengths, inverse))
    return conj(result) if inverse else result


def _irfft(input: Tensor, s: Lengths, dim: Any, norm: str | None, inverse: bool) -> Tensor:
    x = _complex(input)
    last = input.ndim - 1 if dim is None or not len(dim) else one_dim(dim[-1], input.ndim)
    dims, lengths = _plan(x, s, dim, spectrum=2 * (input.shape[last] - 1) if input.ndim else None)
    _some(dims)
    x = _resized(x if inverse else conj(x), dims, _half(lengths))
    return C2R(x, dims, lengths[-1], _scale(norm, lengths, inverse))


def _length(n: int | None) -> Lengths:
    return None if n is None else (n,)


# -- one dimension


@operation(function="fft.fft")
def fft_fft(
    input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Return the Fourier transform along one dimension, complex.

    Args:
        input: of any shape with at least one dimension; integers become the default dtype.
        n: cut the dimension to this length, or fill it up with zeros, before.
        dim: which dimension.
        norm: "backward" (no scale), "ortho" (1/sqrt(n)) or "forward" (1/n).
        out: where the result is written.

    Raises:
        IndexError: there is no such dimension.
        ValueError: a length below 1, or another ``norm``.
        TypeError: half-precision numbers.
    """
    return _fft(input, _length(n), _one(input, dim), norm, False)


@operation(function="fft.ifft")
def fft_ifft(
    input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Return the inverse of ``fft`` along one dimension; arguments and errors as there, "backward" scales by 1/n.

    Args:
        input: at least 1-d.
        n: length to cut or fill up the dimension to, before; of inverses of half spectra, the length of the result.
        dim: which dimension.
        norm: "backward", "ortho" or "forward": where to scale, and by what.
        out: where the result is written.
    """
    return _fft(input, _length(n), _one(input, dim), norm, True)


@operation(function="fft.rfft")
def fft_rfft(
    input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Return the first n // 2 + 1 elements of the ``fft`` of real numbers; the others are their mirrored conjugates.

    Args:
        input: at least 1-d.
        n: length to cut or fill up the dimension to, before; of inverses of half spectra, the length of the result.
        dim: which dimension.
        norm: "backward", "ortho" or "forward": where to scale, and by what.
        out: where the result is written.

    Raises:
        TypeError: complex or half-precision numbers.
        IndexError, ValueError: as of ``fft``.
    """
    return _rfft(input, _length(n), _one(input, dim), norm, False)


@operation(function="fft.irfft")
def fft_irfft(
    input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Return the inverse of ``rfft``: ``n`` real numbers, 2 * (length - 1) if ``n`` is ``None``. Errors as of ``fft``.

    Args:
        input: at least 1-d.
        n: length to cut or fill up the dimension to, before; of inverses of half spectra, the length of the result.
        dim: which dimension.
        norm: "backward", "ortho" or "forward": where to scale, and by what.
        out: where the result is written.
    """
    return _irfft(input, _length(n), _one(input, dim), norm, True)


@operation(function="fft.hfft")
def fft_hfft(
    input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Return the real ``fft`` of a signal of which the first half is given; the other half mirrors it, conjugated.

    Args:
        input: at least 1-d.
        n: length to cut or fill up the dimension to, before; of inverses of half spectra, the length of the result.
        dim: which dimension.
        norm: "backward", "ortho" or "forward": where to scale, and by what.
        out: where the result is written.
    """
    return _irfft(input, _length(n), _one(input, dim), norm, False)


@operation(function="fft.ihfft")
def fft_ihfft(
    input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Return the inverse of ``hfft``: the first half of the ``ifft`` of real numbers.

    Args:
        input: at least 1-d.
        n: length to cut or fill up the dimension to, before; of inverses of half spectra, the length of the result.
        dim: which dimension.
        norm: "backward", "ortho" or "forward": where to scale, and by what.
        out: where the result is written.
    """
    return _rfft(input, _length(n), _one(input, dim), norm, True)


# -- several dimensions


def _make(name: str, kind: Any, inverse: bool, summary: str, dims: Dims | None) -> Any:
    """Make the form of a transform for two (``dims`` are the last two) or any dimensions."""

    def transform(
        input: Tensor,
        s: Lengths = None,
        dim: Any = dims,
        norm: str | None = None,
        *,
        out: Tensor | None = None,
    ) -> Tensor:
        axes = (dim,) if isinstance(dim, int) else dim
        return kind(input, s, axes, norm, inverse)

    transform.__name__ = transform.__qualname__ = f"fft_{name}"
    transform.__doc__ = f"""{summary}

    Args:
        input: of any shape.
        s: lengths to cut or fill up the dimensions to, before; -1 leaves one as it is.
        dim: which dimensions, {"the last two" if dims else "all, or the last len(s),"} by default.
        norm: "backward", "ortho" or "forward": where to scale, by the product of the lengths.

    Raises:
        IndexError: there is no such dimension.
        ValueError: not as many lengths as dimensions, a length below 1, or another ``norm``.
        TypeError: numbers that the transform does not take.
    """
    return operation(function=f"fft.{name}")(transform)


fft_fft2 = _make("fft2", _fft, False, "Return ``fft`` along two dimensions.", (-2, -1))
fft_ifft2 = _make("ifft2", _fft, True, "Return ``ifft`` along two dimensions.", (-2, -1))
fft_rfft2 = _make(
    "rfft2", _rfft, False, "Return ``rfft`` along the last of two dimensions, ``fft`` along the other.", (-2, -1)
)
fft_irfft2 = _make("irfft2", _irfft, True, "Return the inverse of ``rfft2``.", (-2, -1))
fft_hfft2 = _make(
    "hfft2", _irfft, False, "Return ``hfft`` along the last of two dimensions, ``fft`` along the other.", (-2, -1)
)
fft_ihfft2 = _make("ihfft2", _rfft, True, "Return the inverse of ``hfft2``.", (-2, -1))
fft_fftn = _make("fftn", _fft, False, "Return ``fft`` along several dimensions.", None)
fft_ifftn = _make("ifftn", _fft, True, "Return ``ifft`` along several dimensions.", None)
fft_rfftn = _make("rfftn", _rfft, False, "Return ``rfft`` along the last dimension, ``fft`` along the others.", None)
fft_irfftn = _make("irfftn", _irfft, True, "Return the inverse of ``rfftn``.", None)
fft_hfftn = _make("hfftn", _irfft, False, "Return ``hfft`` along the last dimension, ``fft`` along the others.", None)
fft_ihfftn = _make("ihfftn", _rfft, True, "Return the inverse of ``hfftn``.", None)
