"""Products of Householder reflections: ``geqrf``, ``linalg.householder_product`` (``orgqr``) and ``ormqr``.

Reflections ``I - tau[i] v[i] v[i].mH``, where ``v[i]`` is column i of a lower triangle with ones on its diagonal, have
the product ``I - V @ T @ V.mH`` with ``T = inv(I + diag(tau) @ triu(V.mH @ V, 1)) @ diag(tau)``: C. Puglisi, "Modification of
the Householder method based on the compact WY representation" (1992), without a division by tau. So everything is made of
matrix products and one triangular system, and differentiates as they do.
"""

from __future__ import annotations

from typing import Any, NamedTuple, NoReturn

import numpy as np

from ...errors import AutogradError
from ...tensors import Tensor
from ..shape.diagonal import diag_embed, tril, triu
from ..table.nodes import records
from ..table.operation import operation
from ..table.outputs import record_outputs
from .checks import matrices
from .matrix_products import matmul
from .triangular import triangle_solved


class Reflections(NamedTuple):
    """Result of ``geqrf``."""

    a: Tensor
    tau: Tensor


def _no_gradient(*args: Any) -> NoReturn:
    raise AutogradError("geqrf() has no gradient; use linalg.qr(), or detach its input")


@operation(method=True)
def geqrf(input: Tensor, *, out: tuple[Tensor, Tensor] | None = None) -> Reflections:
    """The QR factors of matrices ``(..., m, n)`` as LAPACK has them: ``R``, with the reflections below its diagonal.

    Returns:
        ``a`` ``(..., m, n)`` and ``tau`` ``(..., min(m, n))``; ``Q`` is ``linalg.householder_product(a, tau)``.
        ``linalg.qr`` has a gradient, these have none.

    Raises:
        AutogradError: in the backward pass.
        TypeError: not of floating point.
        ValueError: fewer than 2 dimensions.
    """
    turned, tau = np.linalg.qr(matrices("geqrf", input), "raw")
    result = Reflections(Tensor(np.ascontiguousarray(turned.mT)), Tensor(tau))
    if records(input):
        record_outputs("geqrf", _no_gradient, result, input)
    return result


def _check(name: str, input: Tensor, tau: Tensor) -> None:
    x = matrices(name, input)
    if tau.dtype != input.dtype:
        raise TypeError(f"{name}() takes tensors of one dtype, and you gave {input.dtype} and {tau.dtype}")
    if x.shape[-2] < x.shape[-1]:
        raise ValueError(f"{name}() takes matrices with at least as many rows as columns, and you gave shape {x.shape}")
    if tau.ndim != x.ndim - 1 or tau.shape[:-1] != x.shape[:-2] or tau.shape[-1] > x.shape[-1]:
        raise ValueError(
            f"{name}() needs tau of shape {x.shape[:-2]} + (at most {x.shape[-1]},), and you gave {tau.shape}"
        )


def _vectors_and_weights(input: Tensor, tau: Tensor) -> tuple[Tensor, Tensor]:
    """``V`` and ``T``."""
    rows, count = input.shape[-2], tau.shape[-1]
    v = tril(input[..., :count], -1) + Tensor(np.eye(rows, count, dtype=input.dtype))
    above = tau[..., :, None] * triu(matmul(v.mH, v), 1)
    return v, triangle_solved(above, diag_embed(tau), True, True)


@operation(function="linalg.householder_product")
def householder_product(A: Tensor, tau: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The first n columns of the product of the reflections that ``geqrf`` returns.

    Args:
        A: ``(..., m, n)`` with ``m >= n``; only what is below the diagonal is read.
        tau: ``(..., k)`` with ``k <= n``.
        out: where the result is written.

    Raises:
        TypeError: the dtypes differ, or are not of floating point.
        ValueError: the shapes do not fit.
    """
    _check("linalg.householder_product", A, tau)
    v, t = _vectors_and_weights(A, tau)
    columns = A.shape[-1]
    return Tensor(np.eye(A.shape[-2], columns, dtype=A.dtype)) - matmul(v, matmul(t, v[..., :columns, :].mH))


@operation(method=True)
def orgqr(input: Tensor, tau: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``linalg.householder_product``."""
    return householder_product(input, tau)


@operation(method=True)
def ormqr(
    input: Tensor, tau: Tensor, other: Tensor, left: bool = True, transpose: bool = False, *, out: Tensor | None = None
) -> Tensor:
    """The product of ``other`` with the whole Q, ``(..., m, m)``, of which ``geqrf`` returned the reflections.

    Args:
        input: ``(..., m, n)``; only what is below the diagonal is read.
        tau: ``(..., k)``, ``k`` the smaller of ``m`` and ``n``.
        other: ``(..., m, p)``, or ``(..., p, m)`` with ``left=False``.
        left: ``Q @ other``; else ``other @ Q``.
        transpose: take ``Q.mH`` for ``Q``.
        out: where the result is written.

    Raises:
        TypeError: the dtypes differ, or are not of floating point.
        ValueError: the shapes do not fit.
    """
    x = matrices("ormqr", input)
    matrices("ormqr", other)
    if tau.dtype != input.dtype or other.dtype != input.dtype:
        raise TypeError(
            f"ormqr() takes tensors of one dtype, and you gave {input.dtype}, {tau.dtype} and {other.dtype}"
        )
    expected = (*x.shape[:-2], min(x.shape[-2:]))
    if tau.shape != expected:
        raise ValueError(f"ormqr() needs tau of shape {expected}, and you gave {tau.shape}")
    if other.shape[-2 if left else -1] != x.shape[-2]:
        raise ValueError(f"ormqr() cannot multiply a Q of {x.shape[-2]} rows with shape {other.shape}")
    v, t = _vectors_and_weights(input, tau)
    t = t.mH if transpose else t
    change = matmul(v, matmul(t, matmul(v.mH, other))) if left else matmul(matmul(matmul(other, v), t), v.mH)
    return other - change
