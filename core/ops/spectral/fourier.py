"""Discrete Fourier transforms, ``torch.fft``: of complex numbers, and of real numbers to half of a spectrum and back.

All are built on three linear maps with a scale s (Cooley and Tukey 1965; computed by NumPy's pocketfft):

* ``C2C``: y[k] = s · Σ x[n] exp(∓2πi·kn/N) over any dimensions; its adjoint has the other sign.
* ``R2C``: the same for real numbers. Only the first N // 2 + 1 elements of the last dimension are computed; the others are the
  conjugates of these in reverse order.
* ``C2R``: the inverse of ``R2C``. Imaginary parts that the spectrum of real numbers cannot have are ignored.

``norm`` chooses s, where N is the number of transformed elements: "backward" scales inverse transforms by 1/N, "forward" the
others by 1/N, "ortho" all by 1/√N.
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
from .whole_spectrum import WHOLE

Dims = tuple[int, ...]
Lengths = Sequence[int] | None
_NORMS = ("backward", "ortho", "forward")


@np.errstate(invalid="ignore")  # of infinity, as other operations: nan, without a warning
def _c2c(x: Array, dims: Dims, inverse: bool, scale: float) -> Array:
    spectrum = np.fft.ifftn(x, axes=dims, norm="forward") if inverse else np.fft.fftn(x, axes=dims)
    return spectrum if scale == 1 else spectrum * x.real.dtype.type(scale)


@np.errstate(invalid="ignore")
def _r2c(x: Array, dims: Dims, scale: float) -> Array:
    spectrum = np.fft.rfftn(x, axes=dims)
    return spectrum if scale == 1 else spectrum * x.dtype.type(scale)


def _r2c_adjoint(g: Array, shape: Dims, dims: Dims, scale: float) -> Array:
    last = dims[-1]
    missing = list(g.shape)
    missing[last] = shape[last] - g.shape[last]
    whole = np.concatenate([g, np.zeros(missing, g.dtype)], last)
    return np.array(_c2c(whole, dims, True, scale).real)


@np.errstate(invalid="ignore")
def _c2r(x: Array, dims: Dims, length: int, scale: float) -> Array:
    lengths = [x.shape[dim] for dim in dims[:-1]] + [length]
    return np.fft.irfftn(x, lengths, dims, norm="forward") * x.real.dtype.type(scale)


def _c2r_adjoint(g: Array, shape: Dims, dims: Dims, length: int, scale: float) -> Array:
    spectrum = _r2c(g, dims, scale)
    mirrored = slice(1, length - length // 2)  # each of these represents two elements of the whole spectrum
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


def _transformable(input: Tensor, *, real: bool = False) -> Tensor:
    """Return ``input`` in a dtype that NumPy transforms without conversion."""
    kind, width = input.dtype.kind, input.dtype.itemsize
    if real and kind == "c":
        raise TypeError(
            f"this transform takes real numbers, and the input is {input.dtype}; take its .real, or use fft"
        )
    if kind in "fV" and width < 4:
        raise TypeError(f"Fourier transforms do not take {input.dtype}; convert the input, as with float()")
    return input if kind in "fc" else input.to(to_float(np.empty(0, input.dtype)).dtype)


def _complex(input: Tensor) -> Tensor:
    numbers = _transformable(input)
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
    """Return the dimensions to transform, and the length of each after the transform.

    Args:
        input: the tensor to transform.
        s: the lengths that the user gave.
        dim: the dimensions that the user gave.
        spectrum: the default length of the last dimension if ``input`` is half of a spectrum; ``None`` if it is not.

    Raises:
        ValueError: there are not as many lengths as dimensions, or a length is below 1.
    """
    lengths = None if s is None else [int(length) for length in s]
    if dim is None and lengths is not None:
        if len(lengths) > input.ndim:
            raise ValueError(
                f"s must not have more lengths than the input has dimensions, {input.ndim}; you gave {len(lengths)}"
            )
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
    """Return ``x`` cut, or padded with zeros at the end, to ``lengths`` in the dimensions ``dims``."""
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


def _dims_of_one(input: Tensor, dim: int) -> tuple[int]:
    if not input.ndim:
        raise IndexError("a transform needs a tensor with dimensions, and this one is 0-d")
    return (one_dim(dim, input.ndim),)


def _check_dims(dims: Dims) -> None:
    if not dims:
        raise ValueError("this transform needs at least one dimension, and you gave none")


# -- the kinds of transforms, in any dimensions


def _fft(input: Tensor, s: Lengths, dim: Any, norm: str | None, inverse: bool) -> Tensor:
    x = _transformable(input)
    dims, lengths = _plan(x, s, dim)
    if not dims:
        return _complex(x).clone()
    x = _resized(x, dims, lengths)
    half = x.dtype.kind == "f" and x.numel() and len(set(dims)) == len(dims)
    kind = WHOLE if half else C2C
    return kind(x if half else _complex(x), dims, inverse, _scale(norm, lengths, inverse))


def _rfft(input: Tensor, s: Lengths, dim: Any, norm: str | None, inverse: bool) -> Tensor:
    x = _transformable(input, real=True)
    dims, lengths = _plan(x, s, dim)
    _check_dims(dims)
    result = R2C(_resized(x, dims, lengths), dims, _scale(norm, lengths, inverse))
    return conj(result) if inverse else result


def _irfft(input: Tensor, s: Lengths, dim: Any, norm: str | None, inverse: bool) -> Tensor:
    x = _complex(input)
    last = input.ndim - 1 if dim is None or not len(dim) else one_dim(dim[-1], input.ndim)
    dims, lengths = _plan(x, s, dim, spectrum=2 * (input.shape[last] - 1) if input.ndim else None)
    _check_dims(dims)
    x = _resized(x if inverse else conj(x), dims, _half(lengths))
    return C2R(x, dims, lengths[-1], _scale(norm, lengths, inverse))


def _length(n: int | None) -> Lengths:
    return None if n is None else (n,)


# -- one dimension


@operation(function="fft.fft")
def fft_fft(
    input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Return the discrete Fourier transform in one dimension, complex: ``y[k] = sum(x[j] * exp(-2 pi i j k / n))``.

    Args:
        input: at least 1-d; real numbers are converted to complex ones.
        n: length to cut the dimension to, or to pad it to with zeros, before the transform; ``None`` for neither.
        dim: the dimension.
        norm: "backward" (not scaled), "ortho" (1/sqrt(n)) or "forward" (1/n); "backward" if ``None``.
        out: where the result is written.

    Raises:
        IndexError: the tensor has no dimension ``dim``.
        ValueError: ``n`` is below 1, or ``norm`` is none of the three.
        TypeError: the numbers are of half precision.
    """
    return _fft(input, _length(n), _dims_of_one(input, dim), norm, False)


@operation(function="fft.ifft")
def fft_ifft(
    input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Return the inverse of ``fft``, complex: ``x[j] = sum(y[k] * exp(2 pi i j k / n)) / n``.

    Args:
        input: at least 1-d; real numbers are converted to complex ones.
        n: length to cut the dimension to, or to pad it to with zeros, before the transform; ``None`` for neither.
        dim: the dimension.
        norm: "backward" (scaled by 1/n), "ortho" (1/sqrt(n)) or "forward" (not scaled); "backward" if ``None``.
        out: where the result is written.

    Raises:
        IndexError: the tensor has no dimension ``dim``.
        ValueError: ``n`` is below 1, or ``norm`` is none of the three.
        TypeError: the numbers are of half precision.
    """
    return _fft(input, _length(n), _dims_of_one(input, dim), norm, True)


@operation(function="fft.rfft")
def fft_rfft(
    input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Return the first ``n // 2 + 1`` elements of the ``fft`` of real numbers, complex.

    The other elements are the conjugates of these, in reverse order.

    Args:
        input: at least 1-d, real.
        n: length to cut the dimension to, or to pad it to with zeros, before the transform; ``None`` for neither.
        dim: the dimension.
        norm: "backward" (not scaled), "ortho" (1/sqrt(n)) or "forward" (1/n); "backward" if ``None``.
        out: where the result is written.

    Raises:
        IndexError: the tensor has no dimension ``dim``.
        ValueError: ``n`` is below 1, or ``norm`` is none of the three.
        TypeError: the numbers are complex or of half precision.
    """
    return _rfft(input, _length(n), _dims_of_one(input, dim), norm, False)


@operation(function="fft.irfft")
def fft_irfft(
    input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Return the inverse of ``rfft``: ``n`` real numbers in the dimension.

    Args:
        input: at least 1-d, the first half of a spectrum.
        n: length of the result; ``input`` is cut or padded with zeros to ``n // 2 + 1``. 2 * (length - 1) if ``None``.
        dim: the dimension.
        norm: "backward" (scaled by 1/n), "ortho" (1/sqrt(n)) or "forward" (not scaled); "backward" if ``None``.
        out: where the result is written.

    Raises:
        IndexError: the tensor has no dimension ``dim``.
        ValueError: ``n`` is below 1, or ``norm`` is none of the three.
        TypeError: the numbers are of half precision.
    """
    return _irfft(input, _length(n), _dims_of_one(input, dim), norm, True)


@operation(function="fft.hfft")
def fft_hfft(
    input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Return the ``fft`` of a Hermitian-symmetric signal, ``n`` real numbers in the dimension.

    The second half of such a signal is the conjugate of the first half, in reverse order.

    Args:
        input: at least 1-d, the first half of the signal.
        n: length of the result; ``input`` is cut or padded with zeros to ``n // 2 + 1``. 2 * (length - 1) if ``None``.
        dim: the dimension.
        norm: "backward" (not scaled), "ortho" (1/sqrt(n)) or "forward" (1/n); "backward" if ``None``.
        out: where the result is written.

    Raises:
        IndexError: the tensor has no dimension ``dim``.
        ValueError: ``n`` is below 1, or ``norm`` is none of the three.
        TypeError: the numbers are of half precision.
    """
    return _irfft(input, _length(n), _dims_of_one(input, dim), norm, False)


@operation(function="fft.ihfft")
def fft_ihfft(
    input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Return the inverse of ``hfft``, complex: the first ``n // 2 + 1`` elements of the ``ifft`` of real numbers.

    Args:
        input: at least 1-d, real.
        n: length to cut the dimension to, or to pad it to with zeros, before the transform; ``None`` for neither.
        dim: the dimension.
        norm: "backward" (scaled by 1/n), "ortho" (1/sqrt(n)) or "forward" (not scaled); "backward" if ``None``.
        out: where the result is written.

    Raises:
        IndexError: the tensor has no dimension ``dim``.
        ValueError: ``n`` is below 1, or ``norm`` is none of the three.
        TypeError: the numbers are complex or of half precision.
    """
    return _rfft(input, _length(n), _dims_of_one(input, dim), norm, True)


# -- two or more dimensions


def _make(name: str, kind: Any, inverse: bool, summary: str, dims: Dims | None) -> Any:
    """Return the operation that transforms any number of dimensions; ``dims`` are the default ones."""

    def transform(
        input: Tensor,
        s: Lengths = None,
        dim: Any = dims,
        norm: str | None = None,
        *,
        out: Tensor | None = None,
    ) -> Tensor:
        axes = (dim,) if isinstance(dim, int) else dim
        if not input.ndim and axes and s is None:
            raise IndexError(f"a 0-d tensor has no dimensions {tuple(axes)}; give dim=()")
        return kind(input, s, axes, norm, inverse)

    transform.__name__ = transform.__qualname__ = f"fft_{name}"
    transform.__doc__ = f"""{summary}

    Args:
        input: any shape.
        s: lengths to cut the dimensions to, or to pad them to with zeros, before the transform; -1 keeps a length.
        dim: the dimensions; by default {"the last two" if dims else "the last ``len(s)``, or all"}.
        norm: "backward" (inverse transforms are scaled by 1/N), "ortho" (all by 1/sqrt(N)) or "forward" (the others by 1/N),
            where N is the product of the lengths; "backward" if ``None``.
        out: where the result is written.

    Raises:
        IndexError: the tensor has no such dimension.
        ValueError: there are not as many lengths as dimensions, a length is below 1, or ``norm`` is none of the three.
        TypeError: the numbers are of half precision; they are complex, and the transform takes real ones.
    """
    return operation(function=f"fft.{name}")(transform)


fft_fft2 = _make("fft2", _fft, False, "Return the Fourier transform in two dimensions, complex.", (-2, -1))
fft_ifft2 = _make("ifft2", _fft, True, "Return the inverse of ``fft2``, complex.", (-2, -1))
fft_rfft2 = _make(
    "rfft2",
    _rfft,
    False,
    "Return ``rfft`` of the last of two dimensions, then ``fft`` of the other, complex.",
    (-2, -1),
)
fft_irfft2 = _make("irfft2", _irfft, True, "Return the inverse of ``rfft2``, real.", (-2, -1))
fft_hfft2 = _make(
    "hfft2", _irfft, False, "Return ``fft`` of the first of two dimensions, then ``hfft`` of the last, real.", (-2, -1)
)
fft_ihfft2 = _make("ihfft2", _rfft, True, "Return the inverse of ``hfft2``, complex.", (-2, -1))
fft_fftn = _make("fftn", _fft, False, "Return the Fourier transform in any number of dimensions, complex.", None)
fft_ifftn = _make("ifftn", _fft, True, "Return the inverse of ``fftn``, complex.", None)
fft_rfftn = _make(
    "rfftn", _rfft, False, "Return ``rfft`` of the last dimension, then ``fft`` of the others, complex.", None
)
fft_irfftn = _make("irfftn", _irfft, True, "Return the inverse of ``rfftn``, real.", None)
fft_hfftn = _make(
    "hfftn", _irfft, False, "Return ``fft`` of all dimensions but the last, then ``hfft`` of the last, real.", None
)
fft_ihfftn = _make("ihfftn", _rfft, True, "Return the inverse of ``hfftn``, complex.", None)
