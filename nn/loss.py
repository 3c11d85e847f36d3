"""The losses of numbers in ``functional`` as modules, which keep their reduction and other settings."""
# ruff: noqa: A002 - PyTorch names its arguments so

from __future__ import annotations

from typing import Any

from ..core.extend import Tensor
from . import functional as F
from .functional.reduction import chosen_reduction
from .module import Module


class _Loss(Module):
    """A loss with a ``reduction``: "mean", "sum" or "none"."""

    def __init__(self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean") -> None:
        super().__init__()
        self.reduction = chosen_reduction(size_average, reduce, reduction)


class MSELoss(_Loss):
    """The squared differences, reduced."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """A number, or of the input's shape."""
        return F.mse_loss(input, target, reduction=self.reduction)


class L1Loss(_Loss):
    """The absolute differences, reduced."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """A number, or of the input's shape."""
        return F.l1_loss(input, target, reduction=self.reduction)


class SmoothL1Loss(_Loss):
    """``HuberLoss`` divided by ``beta``: squared differences below ``beta``, absolute ones above."""

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
        """A number, or of the input's shape."""
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(_Loss):
    """Half the squared differences where they are below ``delta``, and straight on from there."""

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction=reduction)
        self.delta = delta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """A number, or of the input's shape."""
        return F.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


class KLDivLoss(_Loss):
    """The Kullback-Leibler divergence of ``exp(input)`` from the target; see ``functional.kl_div``."""

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
        """A number, or of the input's shape."""
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class PoissonNLLLoss(_Loss):
    """The negative log-likelihood of counts under Poisson distributions; see ``functional.poisson_nll_loss``."""

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
        """A number, or of the input's shape."""
        return F.poisson_nll_loss(
            log_input, target, log_input=self.log_input, full=self.full, eps=self.eps, reduction=self.reduction
        )


class GaussianNLLLoss(_Loss):
    """The negative log-likelihood of numbers under normal distributions; see ``functional.gaussian_nll_loss``."""

    def __init__(self, *, full: bool = False, eps: float = 1e-06, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
        self.full = full
        self.eps = eps

    def forward(self, input: Tensor, target: Tensor, var: Any) -> Tensor:
        """A number, or of the input's shape."""
        return F.gaussian_nll_loss(input, target, var, full=self.full, eps=self.eps, reduction=self.reduction)
