"""``kl_divergence``: the Kullback-Leibler divergence, by formulas for pairs of classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..core import digamma, exp, lgamma, log, where, xlogy
from ..core.extend import Tensor
from .bernoulli import Bernoulli, Geometric
from .beta import Beta, Dirichlet, log_beta
from .binomial import Binomial
from .categorical import Categorical, OneHotCategorical
from .distribution import Distribution, sum_rightmost
from .exp_family import ExponentialFamily, bregman_divergence
from .gamma import Exponential, Gamma
from .gumbel import Gumbel
from .half import HalfNormal
from .independent import Independent
from .laplace import Laplace
from .lowrank_multivariate_normal import LowRankMultivariateNormal
from .multivariate_normal import MultivariateNormal
from .normal import Normal
from .odds import softplus
from .poisson import Poisson
from .transformed import TransformedDistribution
from .uniform import Uniform

Formula = Callable[[Any, Any], Tensor]

_formulas: dict[tuple[type, type], Formula] = {}


def register_kl(type_p: type[Distribution], type_q: type[Distribution]) -> Callable[[Formula], Formula]:
    """Return a decorator of the function that computes the divergence of two classes; it serves subclasses too.

    Args:
        type_p: class of the first argument of ``kl_divergence``.
        type_q: class of the second.

    Raises:
        TypeError: one is not a class of distributions.

    Example:
        >>> from telegrad.distributions import Normal, kl_divergence, register_kl
        >>> class Fixed(Normal):
        ...     pass
        >>> @register_kl(Fixed, Fixed)
        ... def no_difference(p, q):
        ...     return p.loc * 0
        >>> kl_divergence(Fixed(0.0, 1.0), Fixed(1.0, 1.0)).item()
        0.0
    """
    for kind in (type_p, type_q):
        if not (isinstance(kind, type) and issubclass(kind, Distribution)):
            raise TypeError(f"register_kl() takes classes of distributions, not {kind!r}")

    def register(formula: Formula) -> Formula:
        _formulas[type_p, type_q] = formula
        return formula

    return register


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """Return the Kullback-Leibler divergence ``E_p[log p(x) - log q(x)]`` in nats.

    Args:
        p: the distribution of ``x``.
        q: the distribution that it is compared with.

    Returns:
        A tensor of the broadcast batch shape.

    Raises:
        NotImplementedError: there is no formula for this pair; ``register_kl`` adds one.

    Example:
        >>> from telegrad.distributions import Normal, kl_divergence
        >>> kl_divergence(Normal(1.0, 1.0), Normal(0.0, 1.0)).item()
        0.5
    """
    # The nearest classes with a formula, those of p first.
    for kind_p in type(p).__mro__:
        for kind_q in type(q).__mro__:
            if (kind_p, kind_q) in _formulas:
                return _formulas[kind_p, kind_q](p, q)
    raise NotImplementedError(
        f"there is no divergence of {type(p).__name__} from {type(q).__name__}; add its formula with register_kl()"
    )


@register_kl(Normal, Normal)
def _normal(p: Normal, q: Normal) -> Tensor:
    ratio = (p.scale / q.scale) ** 2
    shift = ((p.loc - q.loc) / q.scale) ** 2
    return 0.5 * (ratio + shift - 1 - log(ratio))


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Bernoulli | Binomial, q: Bernoulli | Binomial) -> Tensor:
    # Softplus of the logits is -log(1 - probs), and of their negatives -log(probs).
    success = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    return success + (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))


@register_kl(Categorical, Categorical)
def _categorical(p: Categorical, q: Categorical) -> Tensor:
    terms = p.probs * (p.logits - q.logits)
    terms = where(q.probs == 0, float("inf"), terms)
    return where(p.probs == 0, 0.0, terms).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot(p: OneHotCategorical, q: OneHotCategorical) -> Tensor:
    return _categorical(p._categorical(), q._categorical())


@register_kl(Uniform, Uniform)
def _uniform(p: Uniform, q: Uniform) -> Tensor:
    ratio = log((q.high - q.low) / (p.high - p.low))
    return where((q.low > p.low) | (q.high < p.high), float("inf"), ratio)


@register_kl(Exponential, Exponential)
def _exponential(p: Exponential, q: Exponential) -> Tensor:
    ratio = q.rate / p.rate
    return ratio - 1 - log(ratio)


@register_kl(Gamma, Gamma)
def _gamma(p: Gamma, q: Gamma) -> Tensor:
    a, b = p.concentration, q.concentration
    scales = b * log(p.rate / q.rate) + a * (q.rate / p.rate - 1)
    return scales + lgamma(b) - lgamma(a) + (a - b) * digamma(a)


@register_kl(Exponential, Gamma)
def _exponential_gamma(p: Exponential, q: Gamma) -> Tensor:
    return _gamma(Gamma(p.rate * 0 + 1, p.rate, validate_args=False), q)


@register_kl(Gamma, Exponential)
def _gamma_exponential(p: Gamma, q: Exponential) -> Tensor:
    return _gamma(p, Gamma(q.rate * 0 + 1, q.rate, validate_args=False))


@register_kl(Beta, Beta)
def _beta(p: Beta, q: Beta) -> Tensor:
    pairs = ((p.concentration1, q.concentration1), (p.concentration0, q.concentration0))
    total, other = p.concentration1 + p.concentration0, q.concentration1 + q.concentration0
    result = log_beta(*(b for _, b in pairs)) - log_beta(*(a for a, _ in pairs))
    for a, b in pairs:
        result = result + (a - b) * digamma(a)
    return result + (other - total) * digamma(total)


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Dirichlet, q: Dirichlet) -> Tensor:
    a, b = p.concentration, q.concentration
    total = a.sum(-1)
    constants = lgamma(total) - lgamma(b.sum(-1)) - (lgamma(a) - lgamma(b)).sum(-1)
    return constants + ((a - b) * (digamma(a) - digamma(total).unsqueeze(-1))).sum(-1)


@register_kl(Laplace, Laplace)
def _laplace(p: Laplace, q: Laplace) -> Tensor:
    ratio, distance = p.scale / q.scale, (p.loc - q.loc).abs()
    return -log(ratio) + distance / q.scale + ratio * exp(-distance / p.scale) - 1


@register_kl(Poisson, Poisson)
def _poisson(p: Poisson, q: Poisson) -> Tensor:
    return xlogy(p.rate, p.rate / q.rate) - p.rate + q.rate


@register_kl(Geometric, Geometric)
def _geometric(p: Geometric, q: Geometric) -> Tensor:
    return -p.entropy() - log(1 - q.probs) * (1 / p.probs - 1) - log(q.probs)


@register_kl(Independent, Independent)
def _independent(p: Independent, q: Independent) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError(
            f"there is no divergence of Independent(..., {p.reinterpreted_batch_ndims}) from "
            f"Independent(..., {q.reinterpreted_batch_ndims})"
        )
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p: HalfNormal, q: HalfNormal) -> Tensor:
    return 0.5 * ((p.scale / q.scale) ** 2 - 1) - log(p.scale / q.scale)


@register_kl(MultivariateNormal, MultivariateNormal)
@register_kl(MultivariateNormal, LowRankMultivariateNormal)
@register_kl(LowRankMultivariateNormal, MultivariateNormal)
@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _multivariate_normal(p: Any, q: Any) -> Tensor:
    squares = q._squares((q.loc - p.loc).unsqueeze(-1)) + q._squares(p._root)
    return 0.5 * (squares - p.loc.shape[-1]) + q._half_log_det - p._half_log_det


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: TransformedDistribution, q: TransformedDistribution) -> Tensor:
    # A bijection changes both densities by the same factor.
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError(
            f"there is no divergence of {p} from {q}, whose transforms or event shapes differ; add it with register_kl()"
        )
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), len(p.event_shape) - len(p.base_dist.event_shape))


@register_kl(ExponentialFamily, ExponentialFamily)
def _exponential_family(p: ExponentialFamily, q: ExponentialFamily) -> Tensor:
    if type(p) is not type(q):
        raise NotImplementedError(
            f"there is no divergence of {type(p).__name__} from {type(q).__name__}; add its formula with register_kl()"
        )
    return bregman_divergence(p, q)


@register_kl(Binomial, Binomial)
def _binomial(p: Binomial, q: Binomial) -> Tensor:
    if bool((p.total_count < q.total_count).any()):
        raise NotImplementedError("the divergence of Binomial from one of more trials has no formula")
    each = _bernoulli(p, q)
    return where(p.total_count > q.total_count, float("inf"), p.total_count * each)


@register_kl(Gumbel, Gumbel)
def _gumbel(p: Gumbel, q: Gumbel) -> Tensor:
    ratio, shift = p.scale / q.scale, (q.loc - p.loc) / q.scale
    tail = exp(shift + lgamma(1 + ratio))
    return -log(ratio) - shift + np.euler_gamma * (ratio - 1) + tail - 1
