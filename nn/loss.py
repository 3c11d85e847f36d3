"""Layers of regression losses, which keep their reduction and other settings."""
# ruff: noqa: A002 - PyTorch names its arguments so

from __future__ import annotations

from typing import Any

from ..core.extend import Tensor
from . import functional as F
from .functional.reduction import chosen_reduction
from .module import Module


class _Loss(Module):
    """Loss with a ``reduction``: "mean", "sum" or "none"."""

    def __init__(self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean") -> None:
        super().__init__()
        self.reduction = chosen_reduction(size_average, reduce, reduction)


class MSELoss(_Loss):
    """Squared differences ``(input - target) ** 2``.

    Args:
        size_average, reduce: deprecated; use ``reduction``.
        reduction: "mean", "sum" or "none".

    Raises:
        ValueError: an unknown reduction; (of a call) as ``functional.mse_loss``.
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return a scalar, or for "none" a tensor of the input's shape."""
        return F.mse_loss(input, target, reduction=self.reduction)


class L1Loss(_Loss):
    """Absolute differences ``abs(input - target)``.

    Args:
        size_average, reduce: deprecated; use ``reduction``.
        reduction: "mean", "sum" or "none".

    Raises:
        ValueError: an unknown reduction; (of a call) as ``functional.l1_loss``.
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return a scalar, or for "none" a tensor of the input's shape."""
        return F.l1_loss(input, target, reduction=self.reduction)


class SmoothL1Loss(_Loss):
    """``d ** 2 / (2 * beta)`` where the difference d is below ``beta``, ``d - beta / 2`` elsewhere.

    Args:
        size_average, reduce: deprecated; use ``reduction``.
        reduction: "mean", "sum" or "none".
        beta: where the loss becomes linear; 0 gives ``L1Loss``.

    Raises:
        ValueError: an unknown reduction; (of a call) as ``functional.smooth_l1_loss``.
    """

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        beta: float = 1.0,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.beta = beta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return a scalar, or for "none" a tensor of the input's shape."""
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(_Loss):
    """``d ** 2 / 2`` where the difference d is below ``delta``, ``delta * (d - delta / 2)`` elsewhere.

    Args:
        reduction: "mean", "sum" or "none".
        delta: where the loss becomes linear, above 0.

    Raises:
        ValueError: an unknown reduction; (of a call) as ``functional.huber_loss``.
    """

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction=reduction)
        self.delta = delta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return a scalar, or for "none" a tensor of the input's shape."""
        return F.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


class KLDivLoss(_Loss):
    """Kullback-Leibler divergence ``target * (log(target) - input)`` of log-probabilities ``input``.

    Args:
        size_average, reduce: deprecated; use ``reduction``.
        reduction: "batchmean" (the sum divided by the first length), "mean", "sum" or "none".
        log_target: whether the target holds logarithms.

    Raises:
        ValueError: an unknown reduction; (of a call) as ``functional.kl_div``.
    """

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        log_target: bool = False,
    ) -> None:
        batchmean = reduction == "batchmean"
        super().__init__(size_average, reduce, "sum" if batchmean else reduction)
        self.reduction = reduction if batchmean else self.reduction
        self.log_target = log_target

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return a scalar, or for "none" a tensor of the input's shape."""
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class PoissonNLLLoss(_Loss):
    """Negative log-likelihood of counts under Poisson distributions.

    Args:
        log_input: whether the input holds the logarithms of the rates.
        full: whether Stirling's approximation of ``log(target!)`` is added.
        size_average, reduce: deprecated; use ``reduction``.
        eps: keeps the logarithm of a rate of 0 finite.
        reduction: "mean", "sum" or "none".

    Raises:
        ValueError: an unknown reduction; (of a call) as ``functional.poisson_nll_loss``.
    """

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        size_average: bool | None = None,
        eps: float = 1e-08,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_input = log_input
        self.full = full
        self.eps = eps

    def forward(self, log_input: Tensor, target: Tensor) -> Tensor:
        """Return a scalar, or for "none" a tensor of the input's shape."""
        return F.poisson_nll_loss(
            log_input, target, log_input=self.log_input, full=self.full, eps=self.eps, reduction=self.reduction
        )


class GaussianNLLLoss(_Loss):
    """Negative log-likelihood under normal distributions: ``(log(var) + (input - target) ** 2 / var) / 2``.

    Args:
        full: whether the constant ``log(2 * pi) / 2`` is added.
        eps: smaller variances count as this, which has no influence on gradients.
        reduction: "mean", "sum" or "none".

    Raises:
        ValueError: an unknown reduction; (of a call) as ``functional.gaussian_nll_loss``.
    """

    def __init__(self, *, full: bool = False, eps: float = 1e-06, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
        self.full = full
        self.eps = eps

    def forward(self, input: Tensor, target: Tensor, var: Any) -> Tensor:
        """Return a scalar, or for "none" a tensor of the input's shape.

        Args:
            input, target, var: as for ``functional.gaussian_nll_loss``.
        """
        return F.gaussian_nll_loss(input, target, var, full=self.full, eps=self.eps, reduction=self.reduction)
