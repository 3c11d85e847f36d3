"""``ReduceLROnPlateau``: lower rates when a metric stops improving."""

from __future__ import annotations

import math
from typing import Any

from ..arithmetic import number
from ..optimizer import Optimizer
from .base import LRScheduler, per_group, set_rate


class ReduceLROnPlateau(LRScheduler):
    """Rates that are multiplied by ``factor`` when a metric has not improved for ``patience`` steps (``ReduceLROnPlateau``).

    Args:
        optimizer: the optimizer whose rates are set.
        mode: "min" if smaller metrics are better, "max" if larger ones are.
        factor: factor of the rates, below 1.
        patience: number of steps without improvement before the rates are lowered.
        threshold: the smallest change that is an improvement.
        threshold_mode: whether ``threshold`` is a share of the best metric ("rel") or a difference ("abs").
        cooldown: number of steps after a reduction that are not counted.
        min_lr: rates are not lowered below this; a list gives each group its own.
        eps: rates are not changed by less than this.

    Raises:
        ValueError: an option is out of its range.
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
        """Count a step, and lower the rates if the metric has not improved for long enough.

        Args:
            metrics: the metric: a number or a tensor of one element.
            epoch: the number of this step; ``None`` is one more than the last.
        """
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
        """Return whether a metric is better than the best so far, by more than the threshold."""
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
