"""``ExponentialFamily``: distributions whose entropy and divergence follow from one function, the log-normalizer."""

from __future__ import annotations

from collections.abc import Sequence

from ..core import autograd
from ..core.extend import Tensor
from .distribution import Distribution


class ExponentialFamily(Distribution):
    """Base class of distributions of the density ``exp(<t(x), theta> - F(theta) + k(x))``.

    ``theta`` are the natural parameters and ``F`` is the log-normalizer. Subclasses define ``_natural_params``,
    ``_log_normalizer`` and, if it is not 0, ``_mean_carrier_measure``. Entropy and divergence are then Bregman divergences of
    ``F`` (Nielsen and Nock 2010, "Entropies and cross-entropies of exponential families").
    """

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        """Return the natural parameters: each of shape ``batch_shape``, and more dimensions if it is no number."""
        raise self._without("natural parameters")

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        """Return ``F`` of natural parameters, of shape ``batch_shape``."""
        raise self._without("log-normalizer")

    @property
    def _mean_carrier_measure(self) -> float | Tensor:
        """Return the mean of ``k(x)``."""
        return 0.0

    def entropy(self) -> Tensor:
        theta, value, slopes = _expanded(self)
        result = value - self._mean_carrier_measure
        for parameter, slope in zip(theta, slopes):
            result = result - _dot(parameter, slope, value.ndim)
        return _recorded(result, self._natural_params)


def bregman_divergence(p: ExponentialFamily, q: ExponentialFamily) -> Tensor:
    """Return ``F(theta_q) - F(theta_p) - <theta_q - theta_p, dF/dtheta_p>``: the divergence of p from q, of the same class."""
    theta, value, slopes = _expanded(p)
    others = q._natural_params
    result = q._log_normalizer(*others) - value
    for mine, other, slope in zip(theta, others, slopes):
        result = result - _dot(other - mine, slope, result.ndim)
    return _recorded(result, (*p._natural_params, *others))


def _expanded(family: ExponentialFamily) -> tuple[list[Tensor], Tensor, Sequence[Tensor]]:
    """Return the natural parameters, the log-normalizer there, and its derivatives; the parameters keep their graph."""
    given = family._natural_params
    theta = [each if each.requires_grad else each.detach().requires_grad_() for each in given]
    with autograd.enable_grad():
        value = family._log_normalizer(*theta)
        slopes = autograd.grad(value.sum(), theta, create_graph=True)
    return theta, value, slopes


def _dot(x: Tensor, y: Tensor, batch_dims: int) -> Tensor:
    """Return the sum of the products over the dimensions that a parameter has beyond those of the batch."""
    product = x * y
    dims = tuple(range(batch_dims, product.ndim))
    return product.sum(dims) if dims else product


def _recorded(result: Tensor, given: Sequence[Tensor]) -> Tensor:
    return result if any(each.requires_grad for each in given) else result.detach()
