"""``LKJCholesky``: Cholesky factors of random correlation matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from ..core import arange, clamp, lgamma, log, mvlgamma, no_grad, randn
from ..core.extend import Tensor
from . import constraints
from .beta import Beta
from .distribution import Distribution, broadcast_all


class LKJCholesky(Distribution):
    """Distribution of the Cholesky factors of ``dim`` by ``dim`` correlation matrices ``C``, of density in proportion to
    ``det(C)**(concentration - 1)`` (``torch.distributions.LKJCholesky``; Lewandowski, Kurowicka and Joe 2009).

    Args:
        dim: number of rows, at least 2.
        concentration: number above 0; its shape is the batch shape. With 1 all correlation matrices have the same density.
        validate_args: see ``Distribution``.

    Raises:
        ValueError: ``dim`` is below 2, or ``concentration`` is outside its constraint.
    """

    arg_constraints: ClassVar = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None) -> None:
        if dim < 2:
            raise ValueError(f"LKJCholesky: dim must be an integer of at least 2, and you gave {dim}")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        super().__init__(self.concentration.shape, (dim, dim), validate_args)

    def _options(self) -> dict[str, Any]:
        return {"dim": self.dim}

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        # The onion method (section 3.2): a row is a point of a sphere, times the root of a Beta variable.
        with no_grad():
            return self._onion(sample_shape)

    def _onion(self, sample_shape: Sequence[int]) -> Tensor:
        kind = self.concentration.dtype
        before = arange(self.dim - 1, dtype=kind)  # the elements before the row's last but one
        share = self.concentration.unsqueeze(-1) + (self.dim - 2 - before) / 2
        squares = Beta(before / 2 + 0.5, share, validate_args=False).sample(sample_shape).unsqueeze(-1)
        points = randn(self._extended(sample_shape), dtype=kind).tril(-1)[..., 1:, :]
        rows = squares.sqrt() * points / (points * points).sum(-1, True).sqrt()
        left = clamp(1 - (rows * rows).sum(-1), min=float(np.finfo(kind).tiny)).sqrt()
        result = Tensor(np.zeros(self._extended(sample_shape), kind))
        result[..., 0, 0] = 1
        result[..., 1:, :] = rows
        place = np.arange(1, self.dim)
        result[..., place, place] = left
        return result

    def log_prob(self, value: Tensor) -> Tensor:
        # The Jacobian of factor and matrix adds dim - i to the power of the diagonal's element of row i.
        diagonal = self._checked(value).diagonal(dim1=-2, dim2=-1)[..., 1:]
        concentration, others = self.concentration, self.dim - 1
        powers = 2 * (concentration.unsqueeze(-1) - 1) + self.dim - arange(2, self.dim + 1, dtype=diagonal.dtype)
        alpha = concentration + 0.5 * others
        norm = 0.5 * others * math.log(math.pi) + mvlgamma(alpha - 0.5, others) - others * lgamma(alpha)
        return (powers * log(diagonal)).sum(-1) - norm
