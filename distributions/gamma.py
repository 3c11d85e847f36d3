"""``Gamma``, ``Chi2`` and ``Exponential``, and samples of Gamma variables through which gradients flow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from ..core import broadcast_to, clamp, default_generator, digamma, exp, lgamma, log, log1p, rand, special
from ..core.extend import Array, Row, Tensor, record, records
from . import constraints
from .distribution import broadcast_all
from .exp_family import ExponentialFamily

_LOG_GAMMA = Row("log_gamma_sample", lambda xp, g, slope: g * slope)


def log_gamma_sample(concentration: Tensor) -> Tensor:
    """Return the logarithms of samples of gamma variables of scale 1, of the shape of ``concentration``.

    A sample is one for ``concentration + 1``, times ``u ** (1 / concentration)`` with a uniform ``u``: so the logarithm does
    not underflow for small concentrations. The gradient is the implicit one (Figurnov et al. 2018): when ``concentration``
    changes, a sample moves so that the probability of smaller ones stays the same.
    """
    a = concentration.numpy(force=True)
    boosted = default_generator.draw("standard_gamma", a.astype(np.float64) + 1)
    uniform = 1 - default_generator.draw("random", a.shape)  # above 0
    result = Tensor(np.asarray(np.log(boosted) + np.log(uniform) / a).astype(a.dtype))
    if not records(concentration):
        return result
    slope = (
        _slope(a.astype(np.float64) + 1, np.asarray(boosted)) / boosted - np.log(uniform) / a.astype(np.float64) ** 2
    )
    return record(_LOG_GAMMA, result, (concentration,), (), np.asarray(slope).astype(a.dtype))


def _slope(a: Array, x: Array) -> Array:
    """Return the derivative of a sample ``x`` by its concentration ``a``: minus that of the cdf by ``a``, over the density.

    By the series of the lower incomplete gamma function, ``x**a e**-x sum_n x**n / Gamma(a + n + 1)`` (DLMF 8.7.1),
    differentiated by ``a`` term by term; divided by the density it is ``x sum_n t_n (log x - digamma(a + n + 1))``.
    """
    term = 1 / a
    psi = digamma(Tensor(a + 1)).numpy()
    total = np.zeros_like(x)
    # Terms grow while a + n < x, and x is within some standard deviations of a.
    for n in range(1, int(60 + 20 * np.sqrt(x.max(initial=1.0)) + max(0.0, (x - a).max(initial=0.0))) + 1):
        total += term * (np.log(x) - psi)
        term = term * x / (a + n)
        psi = psi + 1 / (a + n)
        if np.abs(term).max(initial=0) < 1e-17 * max(np.abs(total).max(initial=0), 1e-300):
            break
    return np.asarray(-x * total)


class Gamma(ExponentialFamily):
    """Gamma distribution (``torch.distributions.Gamma``).

    Density at ``x``: ``b**a / gamma(a) * x**(a - 1) * exp(-b * x)``.

    Args:
        concentration: the shape parameter ``a``, above 0.
        rate: the inverse scale ``b``, above 0; the two are broadcast to the batch shape.
        validate_args: see ``Distribution``.

    Raises:
        ValueError: a parameter is outside its constraint; the message names it.
    """

    arg_constraints: ClassVar = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.rate

    @property
    def mode(self) -> Tensor:
        return clamp(self.concentration - 1, min=0) / self.rate

    @property
    def variance(self) -> Tensor:
        return self.concentration / (self.rate * self.rate)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        standard = exp(log_gamma_sample(broadcast_to(self.concentration, self._extended(sample_shape))))
        return clamp(standard / self.rate, min=float(np.finfo(self.rate.dtype).tiny))

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._checked(value)
        powers = self.concentration * log(self.rate) + (self.concentration - 1) * log(value)
        return powers - self.rate * value - lgamma(self.concentration)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a - log(self.rate) + lgamma(a) + (1 - a) * digamma(a)

    def cdf(self, value: Tensor) -> Tensor:
        return special.gammainc(self.concentration, self.rate * self._checked(value))

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        power, slope = natural_params
        return lgamma(power + 1) - (power + 1) * log(-slope)


class Chi2(Gamma):
    """Chi-squared distribution: the sum of ``df`` squares of standard normal variables (``torch.distributions.Chi2``).

    Args:
        df: degrees of freedom, above 0; its shape is the batch shape.
        validate_args: see ``Distribution``.

    Raises:
        ValueError: a parameter is outside its constraint; the message names it.
    """

    arg_constraints: ClassVar = {"df": constraints.positive}

    def __init__(self, df: Any, validate_args: bool | None = None) -> None:
        (self.df,) = broadcast_all(df)
        super().__init__(0.5 * self.df, 0.5, validate_args)


class Exponential(ExponentialFamily):
    """Exponential distribution: the time between events that happen ``rate`` times in a unit of time
    (``torch.distributions.Exponential``).

    Density at ``x``: ``rate * exp(-rate * x)``.

    Args:
        rate: above 0; its shape is the batch shape.
        validate_args: see ``Distribution``.

    Raises:
        ValueError: a parameter is outside its constraint; the message names it.
    """

    arg_constraints: ClassVar = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return 1 / self.rate

    @property
    def mode(self) -> Tensor:
        return self.rate * 0

    @property
    def stddev(self) -> Tensor:
        return 1 / self.rate

    @property
    def variance(self) -> Tensor:
        return self.rate**-2

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return -log1p(-rand(self._extended(sample_shape), dtype=self.rate.dtype)) / self.rate

    def log_prob(self, value: Tensor) -> Tensor:
        return log(self.rate) - self.rate * self._checked(value)

    def entropy(self) -> Tensor:
        return 1 - log(self.rate)

    def cdf(self, value: Tensor) -> Tensor:
        return 1 - exp(-self.rate * self._checked(value))

    def icdf(self, value: Tensor) -> Tensor:
        return -log1p(-value) / self.rate

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (-self.rate,)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        return -log(-natural_params[0])
