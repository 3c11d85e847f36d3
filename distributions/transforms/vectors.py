"""Transforms of whole vectors and matrices: to probabilities and to Cholesky factors."""

from __future__ import annotations

import math

import numpy as np

from ...core import arange, cat, clamp, exp, eye, linalg, log, log1p, ones_like, sigmoid, softmax, tanh
from ...core import finfo as floating_info
from ...core.extend import Tensor
from .. import constraints
from ..distribution import Shape
from ..odds import softplus
from .base import Transform


class SoftmaxTransform(Transform):
    """The transform of vectors to probabilities in proportion to ``exp(x)``; its inverse is ``log(y)``."""

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = False

    def _call(self, x: Tensor) -> Tensor:
        return softmax(x, -1)

    def _inverse(self, y: Tensor) -> Tensor:
        return log(y)


class StickBreakingTransform(Transform):
    """The bijection of vectors of n - 1 numbers and n probabilities: each takes a part of what those before it left.

    The parts are ``sigmoid(x - log(k))`` where k elements come after, so that zeros give equal probabilities.
    """

    domain = constraints.real_vector
    codomain = constraints.simplex

    def _call(self, x: Tensor) -> Tensor:
        parts = sigmoid(x - log(_remaining(x)))
        info = floating_info(x.dtype)
        parts = clamp(parts, info.tiny, 1 - info.eps)
        one = ones_like(x[..., :1])
        return cat([parts, one], -1) * cat([one, (1 - parts).cumprod(-1)], -1)

    def _inverse(self, y: Tensor) -> Tensor:
        taken = y[..., :-1]
        left = clamp(1 - taken.cumsum(-1), min=floating_info(y.dtype).tiny)
        return log(taken) - log(left) + log(_remaining(taken))

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        shifted = x - log(_remaining(x))
        return (log(y[..., :-1]) - softplus(shifted)).sum(-1)

    def forward_shape(self, shape: Shape) -> Shape:
        return (*shape[:-1], shape[-1] + 1)

    def inverse_shape(self, shape: Shape) -> Shape:
        return (*shape[:-1], shape[-1] - 1)


def _remaining(x: Tensor) -> Tensor:
    return arange(x.shape[-1], 0, -1, dtype=x.dtype)


class LowerCholeskyTransform(Transform):
    """The transform of square matrices to lower triangular ones, whose diagonal is ``exp`` of the argument's."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def _call(self, x: Tensor) -> Tensor:
        return x.tril(-1) + exp(x.diagonal(dim1=-2, dim2=-1)).diag_embed()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.tril(-1) + log(y.diagonal(dim1=-2, dim2=-1)).diag_embed()


class PositiveDefiniteTransform(LowerCholeskyTransform):
    """The transform of square matrices to positive-definite ones, the product of a Cholesky factor and its transpose."""

    codomain = constraints.positive_definite

    def _call(self, x: Tensor) -> Tensor:
        factor = super()._call(x)
        return factor @ factor.mT

    def _inverse(self, y: Tensor) -> Tensor:
        return super()._inverse(linalg.cholesky(y))


class CorrCholeskyTransform(Transform):
    """The bijection of vectors of ``n (n - 1) / 2`` numbers and Cholesky factors of ``n`` by ``n`` correlation matrices.

    The hyperbolic tangents of the numbers are partial correlations (Stan reference manual, "Cholesky factors of correlation
    matrices"): below the diagonal each takes its part of what the elements before it left of the row's length 1.
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky

    def _call(self, x: Tensor) -> Tensor:
        parts = _as_lower(tanh(x))
        left = (1 - parts * parts).cumprod(-1).sqrt()
        before = cat([ones_like(left[..., :1]), left[..., :-1]], -1)
        return (parts + eye(parts.shape[-1], dtype=x.dtype)) * before

    def _inverse(self, y: Tensor) -> Tensor:
        rows, columns = np.tril_indices(y.shape[-1], -1)
        left = 1 - (y * y).cumsum(-1)
        before = cat([ones_like(left[..., :1]), left[..., :-1]], -1)
        part = y[..., rows, columns] / before[..., rows, columns].sqrt()
        return (log1p(part) - log1p(-part)) / 2

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        # A part is multiplied by what is left before it: 0 is the logarithm for the first of each row.
        rows, columns = np.tril_indices(y.shape[-1], -2)
        left = 1 - (y * y).cumsum(-1)
        of_tanh = 2 * (math.log(2.0) - x - softplus(-2 * x))
        return of_tanh.sum(-1) + 0.5 * log(left[..., rows, columns]).sum(-1)

    def forward_shape(self, shape: Shape) -> Shape:
        size = _side(shape[-1])
        return (*shape[:-1], size, size)

    def inverse_shape(self, shape: Shape) -> Shape:
        if len(shape) < 2 or shape[-1] != shape[-2]:
            raise ValueError(f"CorrCholeskyTransform gives square matrices, and you gave the shape {shape}")
        return (*shape[:-2], shape[-1] * (shape[-1] - 1) // 2)


def _side(count: int) -> int:
    """Return the length of the side of a matrix that has ``count`` elements below its diagonal."""
    size = (1 + math.isqrt(1 + 8 * count)) // 2
    if size * (size - 1) // 2 != count:
        raise ValueError(f"a vector of {count} elements does not fill the part of a square matrix below its diagonal")
    return size


def _as_lower(x: Tensor) -> Tensor:
    """Return matrices with the elements of vectors below the diagonal, row by row, and zeros elsewhere."""
    size = _side(x.shape[-1])
    place = np.full((size, size), x.shape[-1])
    place[np.tril_indices(size, -1)] = np.arange(x.shape[-1])
    return cat([x, x.new_zeros((*x.shape[:-1], 1))], -1)[..., Tensor(place)]
