"""Distributions that are far out more often than normal ones: ``StudentT`` and ``Cauchy``."""

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
    """Student's distribution of ``df`` degrees of freedom around ``loc``, of width ``scale``."""

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
        spread = self.scale * self.scale * self.df / (self.df - 2)
        return where(self.df > 2, spread, where(self.df > 1, math.inf, math.nan))

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
    """The quotient of two normal variables, around ``loc``, of width ``scale``; it has no mean."""

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
