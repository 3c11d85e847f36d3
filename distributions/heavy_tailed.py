"""Distributions whose tails are heavier than the normal one's: ``StudentT`` and ``Cauchy``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from ..core import atan, broadcast_to, digamma, lgamma, log, log1p, rand, randn, tan, where
from ..core.extend import Tensor
from . import constraints
from .distribution import broadcast_all
from .gamma import Chi2
from .location_scale import LocationScale


class StudentT(LocationScale):
    """Student's t-distribution (``torch.distributions.StudentT``).

    Density at ``x``: proportional to ``(1 + z**2 / df) ** (-(df + 1) / 2)`` with ``z = (x - loc) / scale``.

    Args:
        df: degrees of freedom, above 0.
        loc: where the density is greatest.
        scale: the width, above 0; the three are broadcast to the batch shape.
        validate_args: see ``Distribution``.

    Raises:
        ValueError: a parameter is outside its constraint; the message names it.
    """

    arg_constraints: ClassVar = {
        "df": constraints.positive,
        "loc": constraints.real,
        "scale": constraints.positive,
    }

    def __init__(self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None) -> None:
        self.df, loc, scale = broadcast_all(df, loc, scale)
        super().__init__(loc, scale, validate_args)

    @property
    def mean(self) -> Tensor:
        return where(self.df > 1, self.loc, math.nan)

    @property
    def variance(self) -> Tensor:
        finite = self.scale * self.scale * self.df / (self.df - 2)
        return where(self.df > 2, finite, where(self.df > 1, math.inf, math.nan))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended(sample_shape)
        squares = Chi2(broadcast_to(self.df, shape), validate_args=False).rsample()
        return self.loc + self.scale * randn(shape, dtype=self.loc.dtype) / (squares / self.df).sqrt()

    def log_prob(self, value: Tensor) -> Tensor:
        standard = self._standard(value)
        norm = log(self.scale) + 0.5 * (log(self.df) + math.log(math.pi)) + lgamma(0.5 * self.df)
        return -0.5 * (self.df + 1) * log1p(standard * standard / self.df) - norm + lgamma(0.5 * (self.df + 1))

    def entropy(self) -> Tensor:
        half, more = 0.5 * self.df, 0.5 * (self.df + 1)
        beta = lgamma(half) + math.lgamma(0.5) - lgamma(more)
        return log(self.scale) + more * (digamma(more) - digamma(half)) + 0.5 * log(self.df) + beta


class Cauchy(LocationScale):
    """Cauchy distribution: the quotient of two normal variables; it has no mean (``torch.distributions.Cauchy``).

    Density at ``x``: ``1 / (pi * scale * (1 + z**2))`` with ``z = (x - loc) / scale``.

    Args:
        loc: where the density is greatest.
        scale: the width, above 0; the two are broadcast to the batch shape.
        validate_args: see ``Distribution``.

    Raises:
        ValueError: a parameter is outside its constraint; the message names it.
    """

    @property
    def mean(self) -> Tensor:
        return self.loc * math.nan

    @property
    def variance(self) -> Tensor:
        return self.scale * math.inf

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.icdf(rand(self._extended(sample_shape), dtype=self.loc.dtype))

    def log_prob(self, value: Tensor) -> Tensor:
        standard = self._standard(value)
        return -math.log(math.pi) - log(self.scale) - log1p(standard * standard)

    def entropy(self) -> Tensor:
        return log(self.scale) + math.log(4 * math.pi)

    def cdf(self, value: Tensor) -> Tensor:
        return atan(self._standard(value)) / math.pi + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * tan(math.pi * (value - 0.5))
