"""``LinAlgError``, and the checks of matrices that the operations of linear algebra share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....base.errors import TelegradError
from ...tensors import Tensor
from ...types import Array
from ..table.operation import published


@published(function="linalg.LinAlgError")
class LinAlgError(TelegradError, RuntimeError):
    """Error of a matrix without inverse, Cholesky factor, ...; the message names the operation and the matrix of the batch."""


def matrices(name: str, input: Tensor) -> Array:
    """Return the array of a floating-point or complex tensor of at least 2 dimensions.

    Raises:
        TypeError: ``input`` is not a tensor, or has another dtype.
        ValueError: fewer than 2 dimensions.
    """
    try:
        x = input._array
    except AttributeError:
        raise TypeError(f"{name}() takes tensors, not {type(input).__name__}") from None
    if x.ndim < 2:
        raise ValueError(f"{name}() takes matrices, of at least 2 dimensions, and you gave shape {x.shape}")
    return floating(name, x)


def floating(name: str, x: Array) -> Array:
    """Return ``x``, if LAPACK computes in its dtype.

    Raises:
        TypeError: LAPACK does not.
    """
    if x.dtype.char not in "fdFD":
        raise TypeError(f"{name}() computes in float32, float64, complex64 and complex128, not {x.dtype}")
    return x


def square(name: str, input: Tensor) -> Array:
    """Return the array of a tensor of square matrices ``(..., n, n)``, floating-point or complex.

    Raises:
        TypeError: another dtype.
        ValueError: not square, or fewer than 2 dimensions.
    """
    x = matrices(name, input)
    if x.shape[-1] != x.shape[-2]:
        raise ValueError(f"{name}() takes square matrices, and you gave shape {x.shape}")
    return x


def attempt(name: str, what: str, function: Callable[..., Any], x: Array, *more: Any) -> Any:
    """Return ``function(x, *more)``; a ``LinAlgError`` of NumPy becomes ours, which names the matrix of the batch.

    Args:
        name: name of the operation.
        what: end of the message, after the matrix: "is singular, ...".
        function: a function of NumPy.
        x: matrices ``(..., m, n)``.
        more: further arguments of ``function``.

    Raises:
        LinAlgError: ``function`` fails for a matrix.
    """
    try:
        return function(x, *more)
    except np.linalg.LinAlgError:
        raise LinAlgError(f"{name}(): {_which(function, x, more)} {what}") from None


def _which(function: Callable[..., Any], x: Array, more: tuple[Any, ...]) -> str:
    for index in np.ndindex(x.shape[:-2]):
        try:
            function(x[index], *(part[index] if isinstance(part, np.ndarray) else part for part in more))
        except np.linalg.LinAlgError:
            return f"matrix {index if len(index) > 1 else index[0]} of the batch" if index else "the matrix"
        except (ValueError, IndexError):  # broadcast operands cannot be tried one by one
            break
    return "a matrix of the batch"


def unfit(x: Array, function: Callable[..., Any], check_errors: bool) -> Array:
    """Return a mask of the matrices for which NumPy's ``function`` fails.

    Args:
        x: matrices ``(..., m, n)``.
        function: a function of NumPy that raises its ``LinAlgError``.
        check_errors: whether the operation raises the error itself; then the mask is all false.
    """
    bad = np.zeros(x.shape[:-2], bool)
    if check_errors:
        return bad
    try:
        function(x)
    except np.linalg.LinAlgError:
        for index in np.ndindex(bad.shape):
            try:
                function(x[index])
            except np.linalg.LinAlgError:
                bad[index] = True
    return bad


def replaced(input: Tensor, bad: Array) -> Tensor:
    """Return ``input`` with the identity instead of the matrices that the mask ``bad`` marks."""
    if not bad.any():
        return input
    mask = Tensor(np.asarray(bad)[..., None, None])
    return input.masked_fill(mask, 0) + Tensor(np.eye(input.shape[-1], dtype=input.dtype) * mask._array)
