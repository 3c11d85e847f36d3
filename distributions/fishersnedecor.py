"""``FisherSnedecor``: the quotient of two variances."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from ..core import clamp, lgamma, log, log1p, where
from ..core.extend import Tensor
from . import constraints
from .distribution import Distribution, broadcast_all
from .gamma import Gamma


class FisherSnedecor(Distribution):
    """F-distribution: the quotient of two Chi2 variables, each divided by its degrees of freedom
    (``torch.distributions.FisherSnedecor``).

    Args:
        df1: degrees of freedom of the numerator, above 0.
        df2: degrees of freedom of the denominator, above 0; the two are broadcast to the batch shape.
        validate_args: see ``Distribution``.

    Raises:
        ValueError: a parameter is outside its constraint; the message names it.
    """

    arg_constraints: ClassVar = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None) -> None:
        self.df1, self.df2 = broadcast_all(df1, df2)
        super().__init__(self.df1.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return where(self.df2 > 2, self.df2 / (self.df2 - 2), math.nan)

    @property
    def mode(self) -> Tensor:
        return where(self.df1 > 2, (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2), math.nan)

    @property
    def variance(self) -> Tensor:
        a, b = self.df1, self.df2
        return where(b > 4, 2 * b * b * (a + b - 2) / (a * (b - 2) ** 2 * (b - 4)), math.nan)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        above, below = (
            Gamma(0.5 * df, 0.5 * df, validate_args=False).rsample(sample_shape) for df in (self.df1, self.df2)
        )
        return clamp(above / below, min=float(np.finfo(above.dtype).tiny))

    def log_prob(self, value: Tensor) -> Tensor:
        value, a, b = self._checked(value), 0.5 * self.df1, 0.5 * self.df2
        ratio = self.df1 / self.df2
        norm = lgamma(a + b) - lgamma(a) - lgamma(b)
        return norm + a * log(ratio) + (a - 1) * log(value) - (a + b) * log1p(ratio * value)
