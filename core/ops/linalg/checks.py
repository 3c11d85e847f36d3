"""``LinAlgError``, and the checks of matrices that the operations of linear algebra share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import TelegradError
from ...tensors import Tensor
from ...types import Array
from ..table.operation import published


@published(function="linalg.LinAlgError")
class LinAlgError(TelegradError, RuntimeError):
    """A matrix has no inverse, no Cholesky factor, ...; the message names the operation and the matrix of the batch."""


def matrices(name: str, input: Tensor) -> Array:
    """Return the array of a floating-point tensor of at least 2 dimensions.

    Raises:
        TypeError: another dtype.
        ValueError: fewer dimensions.
    """
    try:
        x = input._array
    except AttributeError:
        raise TypeError(f"{name}() takes tensors, not {type(input).__name__}") from None
    if x.ndim < 2:
        raise ValueError(f"{name}() takes matrices, of at least 2 dimensions, and you gave shape {x.shape}")
    return floating(name, x)


def floating(name: str, x: Array) -> Array:
    """Return ``x``, if it is of a type that LAPACK computes in.

    Raises:
        TypeError: another dtype.
    """
    if x.dtype.char not in "fdFD":
        raise TypeError(f"{name}() computes in float32, float64, complex64 and complex128, not {x.dtype}")
    return x


def square(name: str, input: Tensor) -> Array:
    """Return ``matrices``, square ones.

    Raises:
        TypeError: another dtype.
        ValueError: not square, or fewer than 2 dimensions.
    """
    x = matrices(name, input)
    if x.shape[-1] != x.shape[-2]:
        raise ValueError(f"{name}() takes square matrices, and you gave shape {x.shape}")
    return x


def attempt(name: str, what: str, function: Callable[..., Any], x: Array, *more: Any) -> Any:
    """Return ``function(x, *more)``, whose ``LinAlgError`` of NumPy becomes ours and says which matrix of the batch it was.

    Raises:
        LinAlgError: the matrix is ``what``.
    """
    try:
        return function(x, *more)
    except np.linalg.LinAlgError:
        raise LinAlgError(f"{name}(): {_which(function, x, more)} {what}") from None


def _which(function: Callable[..., Any], x: Array, more: tuple[Any, ...]) -> str:
    for place in np.ndindex(x.shape[:-2]):
        try:
            function(x[place], *(part[place] if isinstance(part, np.ndarray) else part for part in more))
        except np.linalg.LinAlgError:
            return f"matrix {place if len(place) > 1 else place[0]} of the batch" if place else "the matrix"
        except (ValueError, IndexError):  # broadcast operands cannot be looked at one by one
            break
    return "a matrix of the batch"


def unfit(x: Array, function: Callable[..., Any], check_errors: bool) -> Array:
    """For which matrices of the batch NumPy's ``function`` fails; with ``check_errors`` that is left to the operation."""
    bad = np.zeros(x.shape[:-2], bool)
    if check_errors:
        return bad
    try:
        function(x)
    except np.linalg.LinAlgError:
        for place in np.ndindex(bad.shape):
            try:
                function(x[place])
            except np.linalg.LinAlgError:
                bad[place] = True
    return bad


def replaced(input: Tensor, bad: Array) -> Tensor:
    """``input`` with the identity in place of the matrices that are ``bad``."""
    if not bad.any():
        return input
    mask = Tensor(np.asarray(bad)[..., None, None])
    return input.masked_fill(mask, 0) + Tensor(np.eye(input.shape[-1], dtype=input.dtype) * mask._array)
