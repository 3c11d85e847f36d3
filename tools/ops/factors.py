"""Checks of LU, LDL and Householder factors, of solving with them, and of low-rank factors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import core as tg
from ...core import Tensor
from ...testing.ops import Make, OpCheck
from .linalg import SQUARE, any_rank, regular, systems

la = tg.linalg


def pivoted(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of a matrix and ``B`` that calls ``function(LU, pivots, B)``."""
    return lambda a, b: function(*la.lu_factor(a), b)


def dominant(make: Make) -> list[tuple[Tensor]]:
    """Return matrices of any shape whose pivots do not change order when the elements change slightly."""
    shapes = ((4, 2), (2, 3, 3), (2, 4), (3, 1), (2, 0))
    return [
        (Tensor(make(*shape, low=0.1, high=0.5).numpy(force=True) + 2 * np.eye(*shape[-2:])[::-1], True),)
        for shape in shapes
    ]


def reflections(make: Make) -> list[tuple[Tensor, Tensor]]:
    """Return samples of Householder vectors and weights, as many as columns or fewer."""
    return [
        (make(*shape, signs=True), make(*tau)) for shape, tau in (((4, 3), (3,)), ((2, 3, 2), (2, 1)), ((2, 2), (2,)))
    ]


def reflected(make: Make) -> list[tuple[Tensor, Tensor, Tensor]]:
    """Return samples of Householder vectors, as many weights as columns, and a matrix to multiply from the left."""
    return [(a, make(*a.shape[:-2], a.shape[-1]), make(*a.shape[:-1], 2)) for a, _ in reflections(make)]


def symmetric(a: Tensor) -> Tensor:
    """Return a symmetric matrix that is not definite."""
    return a + a.mT - Tensor(np.eye(a.shape[-1], dtype=a.dtype)) * 4


def of_rank_2(make: Make) -> list[tuple[Tensor, Tensor]]:
    """Return samples of two matrices whose product has rank 2."""
    return [(make(4, 2), make(2, 3)), (make(2, 3, 2), make(2, 2, 4))]


def _low_rank(function: Callable[[Tensor], Any]) -> Callable[[Tensor, Tensor], Any]:
    """Return a function of the two results that are not random: the product of the factors, and the singular values."""

    def parts(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        u, s, v = function(a @ b)
        return s, (u * s[..., None, :]) @ v.mH

    return parts


def _constant(make: Make) -> list[tuple[Tensor, Tensor]]:
    return [(a.detach(), b) for a, b in systems(make)]


DTYPES = ("float32", "float64")
INEXACT = ("int64", *DTYPES)

CHECKS = [
    OpCheck("lu_factor", lambda a: la.lu_factor(a).LU, dominant, dtypes=INEXACT),
    OpCheck("lu_factor:unpivoted", lambda a: la.lu_factor(a, pivot=False).LU, SQUARE, dtypes=INEXACT),
    OpCheck("lu_factor_ex", lambda a: la.lu_factor_ex(a).LU, regular((3, 3), (0, 2, 2), (2, 0, 0)), dtypes=INEXACT),
    OpCheck("linalg_lu", lambda a: tuple(la.lu(a)), dominant, dtypes=INEXACT),
    OpCheck("lu", lambda a: tg.lu(a)[0], SQUARE, dtypes=INEXACT),
    OpCheck("lu_unpack", lambda a: tuple(tg.lu_unpack(*la.lu_factor(a))), dominant, dtypes=INEXACT),
    OpCheck("linalg_lu_solve", pivoted(la.lu_solve), systems, dtypes=DTYPES),
    OpCheck("linalg_lu_solve:adjoint", pivoted(lambda *args: la.lu_solve(*args, adjoint=True)), systems, dtypes=DTYPES),
    OpCheck(
        "linalg_lu_solve:right",
        lambda a, b: la.lu_solve(*la.lu_factor(a), b.mT, left=False),
        systems,
        dtypes=DTYPES,
    ),
    OpCheck("lu_solve", pivoted(lambda lu, pivots, b: tg.lu_solve(b, lu, pivots)), systems, dtypes=DTYPES),
    OpCheck("householder_product", la.householder_product, reflections, dtypes=INEXACT),
    OpCheck("orgqr", tg.orgqr, reflections, dtypes=INEXACT),
    OpCheck("ormqr", tg.ormqr, reflected, dtypes=INEXACT),
    OpCheck("ormqr:transposed", lambda a, tau, b: tg.ormqr(a, tau, b, True, True), reflected, dtypes=INEXACT),
    OpCheck("ormqr:right", lambda a, tau, b: tg.ormqr(a, tau, b.mT, False), reflected, dtypes=INEXACT),
    OpCheck(
        "geqrf",
        lambda a: la.householder_product(*tg.geqrf(a.detach())) if a.shape[-2] >= a.shape[-1] else tg.geqrf(a.detach()),
        any_rank,
        orders=0,
        dtypes=INEXACT,
    ),
    OpCheck("ldl_factor", lambda a: la.ldl_factor(symmetric(a.detach())).LD, SQUARE, orders=0, dtypes=INEXACT),
    OpCheck("ldl_factor_ex", lambda a: la.ldl_factor_ex(symmetric(a.detach())).LD, SQUARE, orders=0, dtypes=INEXACT),
    OpCheck("ldl_solve", lambda a, b: la.ldl_solve(*la.ldl_factor(symmetric(a.detach())), b), _constant, dtypes=DTYPES),
    OpCheck("svd_lowrank", _low_rank(lambda x: tg.svd_lowrank(x, 2)), of_rank_2, dtypes=()),
    OpCheck("pca_lowrank", _low_rank(lambda x: tg.pca_lowrank(x, 2, center=False)), of_rank_2, dtypes=()),
]
