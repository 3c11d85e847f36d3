"""Parametrization of a weight by orthogonal or unitary matrices: ``parametrizations.orthogonal``."""

from __future__ import annotations

import numpy as np

from ...core import cat, eye, geqrf, linalg, matrix_exp, randn, where, zeros_like
from ...core.extend import Tensor
from ..module import Module
from . import parametrize

MAPS = ("matrix_exp", "cayley", "householder")


class _Orthogonal(Module):
    """Map of any matrix to one with orthonormal columns, or rows if it is wide.

    With ``base`` the map goes around a fixed orthogonal matrix (dynamic trivialization: Lezcano-Casado 2019).
    """

    base: Tensor | None

    def __init__(self, orthogonal_map: str, use_trivialization: bool) -> None:
        super().__init__()
        self.orthogonal_map = orthogonal_map
        self._around_base = use_trivialization
        self.register_buffer("base", None)

    def forward(self, X: Tensor) -> Tensor:  # noqa: N803 - the field's name of a matrix
        """Return the orthogonal matrix, of the shape of ``X``."""
        wide = X.shape[-2] < X.shape[-1]
        tall = X.mT if wide else X
        Q = self._reflections(tall) if self.orthogonal_map == "householder" else self._rotation(tall)
        if self.base is not None:
            Q = self.base @ Q
        return Q.mT if wide else Q

    def _rotation(self, X: Tensor) -> Tensor:  # noqa: N803
        rows, columns = X.shape[-2:]
        lower = X.tril()
        if rows != columns:
            lower = cat([lower, lower.new_zeros((*X.shape[:-1], rows - columns))], -1)
        skew = lower - lower.mH
        if self.orthogonal_map == "matrix_exp":
            return matrix_exp(skew)[..., :columns]
        identity = eye(rows, dtype=X.dtype)
        return linalg.solve(identity - skew / 2, identity + skew / 2)[..., :columns]

    def _reflections(self, X: Tensor) -> Tensor:  # noqa: N803
        vectors = X.tril(-1)
        tau = 2.0 / (1.0 + (vectors * vectors.conj()).sum(-2))
        signs = X.detach().diagonal(dim1=-2, dim2=-1).sign()
        return linalg.householder_product(vectors, tau) * signs.unsqueeze(-2)

    def right_inverse(self, Q: Tensor) -> Tensor:  # noqa: N803
        """Return a matrix that is mapped to the orthogonal matrix nearest in QR's sense to ``Q``.

        Raises:
            NotImplementedError: ``matrix_exp`` and ``cayley`` have no inverse without trivialization.
        """
        wide = Q.shape[-2] < Q.shape[-1]
        tall = Q.mT if wide else Q
        if self._around_base:
            self._set_base(tall)
            return _negative_identity(Q)
        if self.orthogonal_map != "householder":
            raise NotImplementedError(
                f"{self.orthogonal_map!r} has no inverse; to set the weight, use use_trivialization=True"
            )
        reflections, tau = geqrf(tall)
        # LAPACK leaves a reflection out where tau is 0; _reflections makes it, which turns that column.
        diagonal = reflections.diagonal(dim1=-2, dim2=-1)
        diagonal.copy_(where(tau == 0, -diagonal.sign(), diagonal.sign()))
        return reflections.mT if wide else reflections

    def _set_base(self, tall: Tensor) -> None:
        rows, columns = tall.shape[-2:]
        if rows != columns:
            more = randn(*tall.shape[:-1], rows - columns).to(tall.dtype)
            tall = cat([tall, more], -1)
        self.base = tall.clone() if rows == columns and _is_orthogonal(tall) else _orthogonalized(tall)


def _is_orthogonal(matrix: Tensor) -> bool:
    values = matrix.numpy(force=True)
    product = values.conj().swapaxes(-1, -2) @ values
    return bool(np.allclose(product, np.eye(values.shape[-1]), atol=10 * values.shape[-1] * np.finfo(values.dtype).eps))


def _orthogonalized(matrix: Tensor) -> Tensor:
    # The signs make the factorization unique, so that an orthogonal matrix stays what it is.
    Q, R = linalg.qr(matrix)
    return Q * R.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


def _negative_identity(like: Tensor) -> Tensor:
    matrix = zeros_like(like)
    matrix.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
    return matrix


def orthogonal(
    module: Module, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True
) -> Module:
    """Keep a weight's matrices orthogonal, or unitary if they are complex: ``Q.mH @ Q`` is the identity.

    A wide matrix has orthonormal rows. The weight starts at the matrix of its QR decomposition; without trivialization
    "matrix_exp" and "cayley" start at what they make of it, and cannot be set.

    Args:
        module: module with the weight.
        name: name of the weight, of shape ``(..., m, n)``.
        orthogonal_map: "matrix_exp", "cayley" or "householder"; if ``None`` the first for square and complex weights,
            else the last.
        use_trivialization: map around the present weight, which a fixed buffer keeps; it lets the weight be set.

    Returns:
        ``module``.

    Raises:
        ValueError: the weight has fewer than two dimensions, the map is unknown, or it is "householder" of complex numbers.
    """
    weight = module.get_parameter(name)
    if weight.ndim < 2:
        raise ValueError(
            f"orthogonal() needs a weight of two dimensions or more, and {name!r} has shape {weight.shape}"
        )
    usual = "matrix_exp" if weight.shape[-2] == weight.shape[-1] or weight.is_complex() else "householder"
    chosen = usual if orthogonal_map is None else orthogonal_map
    if chosen not in MAPS:
        raise ValueError(f"orthogonal_map must be one of {', '.join(MAPS)}, and you gave {chosen!r}")
    if chosen == "householder" and weight.is_complex():
        raise ValueError("the householder map is for real weights; use matrix_exp or cayley for complex ones")
    return parametrize.register_parametrization(module, name, _Orthogonal(chosen, use_trivialization), unsafe=True)
