"""Divergences of distributions of unlike classes: the expected ``-log q(x)`` under p, less the entropy of p."""

from __future__ import annotations

import math

import numpy as np

from ..core import broadcast_to, digamma, erf, exp, lgamma, log, log1p, where, xlogy
from ..core.extend import Tensor
from .bernoulli import Bernoulli
from .beta import Beta, log_beta
from .binomial import Binomial
from .continuous_bernoulli import ContinuousBernoulli
from .distribution import Distribution
from .gamma import Exponential, Gamma
from .gumbel import Gumbel
from .heavy_tailed import Cauchy
from .kl import register_kl
from .laplace import Laplace
from .lifetimes import Pareto
from .normal import Normal
from .poisson import Poisson
from .uniform import Uniform


@register_kl(Beta, Normal)
@register_kl(ContinuousBernoulli, Normal)
@register_kl(Exponential, Normal)
@register_kl(Gamma, Normal)
@register_kl(Gumbel, Normal)
@register_kl(Laplace, Normal)
@register_kl(Pareto, Normal)
@register_kl(Uniform, Normal)
def _from_normal(p: Distribution, q: Normal) -> Tensor:
    square = p.variance + (p.mean - q.loc) ** 2
    return log(q.scale) + 0.5 * math.log(2 * math.pi) + square / (2 * q.scale**2) - p.entropy()


@register_kl(Beta, Exponential)
@register_kl(ContinuousBernoulli, Exponential)
@register_kl(Pareto, Exponential)
def _from_exponential(p: Distribution, q: Exponential) -> Tensor:
    return q.rate * p.mean - log(q.rate) - p.entropy()


@register_kl(Uniform, Exponential)
def _uniform_exponential(p: Uniform, q: Exponential) -> Tensor:
    return where(p.low < 0, math.inf, _from_exponential(p, q))


@register_kl(Normal, Laplace)
def _normal_laplace(p: Normal, q: Laplace) -> Tensor:
    shift = (p.loc - q.loc) / p.scale
    distance = p.scale * (math.sqrt(2 / math.pi) * exp(-shift * shift / 2) + shift * erf(shift / math.sqrt(2)))
    return log(2 * q.scale) + distance / q.scale - p.entropy()


@register_kl(Beta, Gamma)
@register_kl(Pareto, Gamma)
def _from_gamma(p: Beta | Pareto, q: Gamma) -> Tensor:
    a, b = q.concentration, q.rate
    return lgamma(a) - a * log(b) - (a - 1) * _mean_log(p) + b * p.mean - p.entropy()


@register_kl(Uniform, Gamma)
def _uniform_gamma(p: Uniform, q: Gamma) -> Tensor:
    a, b = q.concentration, q.rate
    return where(p.low < 0, math.inf, lgamma(a) - a * log(b) - (a - 1) * _mean_log(p) + b * p.mean - p.entropy())


@register_kl(Exponential, Gumbel)
@register_kl(Gamma, Gumbel)
@register_kl(Normal, Gumbel)
@register_kl(Uniform, Gumbel)
def _from_gumbel(p: Exponential | Gamma | Normal | Uniform, q: Gumbel) -> Tensor:
    tail = exp(q.loc / q.scale) * _mean_exp(p, -1 / q.scale)
    return log(q.scale) + (p.mean - q.loc) / q.scale + tail - p.entropy()


@register_kl(Beta, ContinuousBernoulli)
def _beta_continuous_bernoulli(p: Beta, q: ContinuousBernoulli) -> Tensor:
    return -p.mean * q.logits - log1p(-q.probs) - q._log_norm(q.probs) - p.entropy()


@register_kl(Uniform, ContinuousBernoulli)
def _uniform_continuous_bernoulli(p: Uniform, q: ContinuousBernoulli) -> Tensor:
    return where(_beyond_one(p), math.inf, -p.mean * q.logits - log1p(-q.probs) - q._log_norm(q.probs) - p.entropy())


@register_kl(Beta, Uniform)
@register_kl(ContinuousBernoulli, Uniform)
def _in_uniform(p: Distribution, q: Uniform) -> Tensor:
    return where((q.low > 0) | (q.high < 1), math.inf, log(q.high - q.low) - p.entropy())


@register_kl(Uniform, Beta)
def _uniform_beta(p: Uniform, q: Beta) -> Tensor:
    mirrored = Uniform(1 - p.high, 1 - p.low, validate_args=False)
    a, b = q.concentration1, q.concentration0
    divergence = log_beta(a, b) - (a - 1) * _mean_log(p) - (b - 1) * _mean_log(mirrored) - p.entropy()
    return where(_beyond_one(p), math.inf, divergence)


@register_kl(Uniform, Pareto)
def _uniform_pareto(p: Uniform, q: Pareto) -> Tensor:
    divergence = (q.alpha + 1) * _mean_log(p) - log(q.alpha) - q.alpha * log(q.scale) - p.entropy()
    return where(p.low < q.scale, math.inf, divergence)


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p: Bernoulli, q: Poisson) -> Tensor:
    return q.rate - p.probs * log(q.rate) - p.entropy()


@register_kl(Pareto, Pareto)
def _pareto(p: Pareto, q: Pareto) -> Tensor:
    ratio = q.alpha / p.alpha
    divergence = q.alpha * log(p.scale / q.scale) - log(ratio) + ratio - 1
    return where(p.scale < q.scale, math.inf, divergence)


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli(p: ContinuousBernoulli, q: ContinuousBernoulli) -> Tensor:
    norms = p._log_norm(p.probs) + log1p(-p.probs) - q._log_norm(q.probs) - log1p(-q.probs)
    return p.mean * (p.logits - q.logits) + norms


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Cauchy, q: Cauchy) -> Tensor:
    return log(((p.scale + q.scale) ** 2 + (p.loc - q.loc) ** 2) / (4 * p.scale * q.scale))


# p has samples that q cannot have.
_OUTSIDE = {
    Normal: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Laplace: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Gumbel: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Exponential: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gamma: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Pareto: (Beta, ContinuousBernoulli, Uniform),
    Beta: (Pareto,),
    ContinuousBernoulli: (Pareto,),
    Poisson: (Bernoulli, Binomial),
}


def _outside(p: Distribution, q: Distribution) -> Tensor:
    like = next(iter(p._given().values()))
    return broadcast_to(like.new_tensor(math.inf), np.broadcast_shapes(p.batch_shape, q.batch_shape))


for _p, _all in _OUTSIDE.items():
    for _q in _all:
        register_kl(_p, _q)(_outside)


def _beyond_one(p: Uniform) -> Tensor:
    return (p.low < 0) | (p.high > 1)


def _mean_log(p: Distribution) -> Tensor:
    """Return the mean of ``log(x)``."""
    if isinstance(p, Beta):
        return digamma(p.concentration1) - digamma(p.concentration1 + p.concentration0)
    if isinstance(p, Pareto):
        return log(p.scale) + 1 / p.alpha
    assert isinstance(p, Uniform)
    return (xlogy(p.high, p.high) - xlogy(p.low, p.low)) / (p.high - p.low) - 1


def _mean_exp(p: Distribution, t: Tensor) -> Tensor:
    """Return the mean of ``exp(t * x)``, the moment-generating function, at ``t`` below 0."""
    if isinstance(p, Exponential):
        return p.rate / (p.rate - t)
    if isinstance(p, Gamma):
        return (1 - t / p.rate) ** -p.concentration
    if isinstance(p, Normal):
        return exp(p.loc * t + (p.scale * t) ** 2 / 2)
    assert isinstance(p, Uniform)
    return (exp(t * p.high) - exp(t * p.low)) / (t * (p.high - p.low))
