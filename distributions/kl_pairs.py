"""Divergences of distributions of unlike classes: the expected ``-log q(x)`` under p, less the entropy of p."""

from __future__ import annotations

import math

from ..core import erf, exp, log, where
from ..core.extend import Tensor
from .beta import Beta
from .distribution import Distribution
from .gamma import Exponential, Gamma
from .gumbel import Gumbel
from .heavy_tailed import Cauchy
from .kl import register_kl
from .laplace import Laplace
from .lifetimes import Pareto
from .normal import Normal
from .uniform import Uniform


@register_kl(Beta, Normal)
@register_kl(Exponential, Normal)
@register_kl(Gamma, Normal)
@register_kl(Gumbel, Normal)
@register_kl(Laplace, Normal)
@register_kl(Uniform, Normal)
def _from_normal(p: Distribution, q: Normal) -> Tensor:
    square = p.variance + (p.mean - q.loc) ** 2
    return log(q.scale) + 0.5 * math.log(2 * math.pi) + square / (2 * q.scale**2) - p.entropy()


@register_kl(Beta, Exponential)
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


@register_kl(Pareto, Pareto)
def _pareto(p: Pareto, q: Pareto) -> Tensor:
    ratio = q.alpha / p.alpha
    divergence = q.alpha * log(p.scale / q.scale) - log(ratio) + ratio - 1
    return where(p.scale < q.scale, math.inf, divergence)


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Cauchy, q: Cauchy) -> Tensor:
    return log(((p.scale + q.scale) ** 2 + (p.loc - q.loc) ** 2) / (4 * p.scale * q.scale))


@register_kl(Normal, Beta)
@register_kl(Normal, Exponential)
@register_kl(Normal, Gamma)
@register_kl(Normal, Uniform)
@register_kl(Laplace, Beta)
@register_kl(Laplace, Exponential)
@register_kl(Laplace, Gamma)
@register_kl(Laplace, Uniform)
@register_kl(Gumbel, Beta)
@register_kl(Gumbel, Exponential)
@register_kl(Gumbel, Gamma)
@register_kl(Gumbel, Uniform)
@register_kl(Exponential, Beta)
@register_kl(Exponential, Uniform)
@register_kl(Gamma, Beta)
@register_kl(Gamma, Uniform)
def _outside(p: Distribution, q: Distribution) -> Tensor:
    # p has samples that q cannot have.
    return p.mean * 0 + q.mean * 0 + math.inf
