"""``ReduceLROnPlateau``: lower rates when a measure stops getting better."""

from __future__ import annotations

import math
from typing import Any

from ..arithmetic import number
from ..optimizer import Optimizer
from .base import LRScheduler, per_group, set_rate


class ReduceLROnPlateau(LRScheduler):
    """Times ``factor`` when the measure given to ``step`` did not get better for ``patience`` steps.

    Args:
        optimizer: whose rates are set.
        mode: whether a better measure is smaller ("min") or larger ("max").
        factor: below 1.
        patience: steps without a better measure that are borne.
        threshold: by how much it must be better to count: ...
        threshold_mode: ... as a share of the best ("rel") or as a difference ("abs").
        cooldown: steps after a reduction that do not count.
        min_lr: rates are not lowered below this; a list gives each group its own.
        eps: changes smaller than this are left out.

    Raises:
        ValueError: an option makes no sense.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float | list[float] = 0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1:
            raise ValueError(f"factor must be below 1, and you gave {factor}")
        if mode not in ("min", "max"):
            raise ValueError(f'mode must be "min" or "max", and you gave {mode!r}')
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(f'threshold_mode must be "rel" or "abs", and you gave {threshold_mode!r}')
        self.mode = mode
        self.factor = factor
        self.patience = patience
        self.threshold = threshold
        self.threshold_mode = threshold_mode
        self.cooldown = cooldown
        self.cooldown_counter = 0
        self.min_lrs = per_group("min_lr", min_lr, optimizer)
        self.eps = eps
        self.best = math.inf if mode == "min" else -math.inf
        self.num_bad_epochs = 0
        super().__init__(optimizer)

    def _begin(self) -> None:
        self.last_epoch = 0
        self._last_lr = self._rates()

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Take note of the measure, a number or a tensor of one, and lower the rates if it is time."""
        current = float(metrics)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self.is_better(current, self.best):
            self.best = current
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce()
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = self._rates()

    def is_better(self, measure: float, best: float) -> bool:
        """Whether a measure is better than the best so far, by more than the threshold."""
        sign = 1 if self.mode == "min" else -1
        if self.threshold_mode == "rel":
            return sign * measure < sign * best * (1 - sign * self.threshold)
        return sign * measure < sign * best - self.threshold

    def _reduce(self) -> None:
        for group, least in zip(self.optimizer.param_groups, self.min_lrs):
            present = number(group["lr"])
            rate = max(present * self.factor, least)
            if present - rate > self.eps:
                set_rate(group, rate)
