"""Constraints on matrices: the last two dimensions are checked together."""

from __future__ import annotations

import numpy as np

from ...core.extend import Array
from .base import Condition


def _is_square(x: Array) -> Array:
    return np.full(x.shape[:-2], x.shape[-2] == x.shape[-1])


def _symmetric(x: Array) -> Array:
    square = _is_square(x)
    return square & np.isclose(x, x.swapaxes(-1, -2), atol=1e-6).all((-2, -1)) if square.all() else square


def _eigenvalues(x: Array, holds: np.ufunc) -> Array:
    symmetric = _symmetric(x)
    return symmetric & holds(np.linalg.eigvalsh(x), 0).all(-1) if symmetric.any() else symmetric


def _lower(x: Array) -> Array:
    return np.asarray((np.tril(x) == x).all((-2, -1)))


def _lower_cholesky(x: Array) -> Array:
    return _lower(x) & (np.diagonal(x, axis1=-2, axis2=-1) > 0).all(-1)


def _unit_rows(x: Array) -> Array:
    # As many roundings as a row has elements.
    slack = np.finfo(x.dtype).eps * x.shape[-1] * 10
    return np.asarray((np.abs(np.linalg.norm(x, axis=-1) - 1) < slack).all(-1))


square = Condition("square matrices", _is_square, 2)
symmetric = Condition("symmetric matrices", _symmetric, 2)
positive_semidefinite = Condition("positive-semidefinite matrices", lambda x: _eigenvalues(x, np.greater_equal), 2)
positive_definite = Condition("positive-definite matrices", lambda x: _eigenvalues(x, np.greater), 2)
lower_triangular = Condition("lower triangular matrices", _lower, 2)
lower_cholesky = Condition("lower triangular matrices with a positive diagonal", _lower_cholesky, 2)
corr_cholesky = Condition(
    "lower triangular matrices with a positive diagonal and rows of length 1",
    lambda x: _lower_cholesky(x) & _unit_rows(x),
    2,
)
