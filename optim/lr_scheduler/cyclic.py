"""``CyclicLR``: rates that go up and down between two bounds, and momentum in the opposite direction (Smith 2017)."""

from __future__ import annotations

import math
from collections.abc import Callable

from ..optimizer import Optimizer
from .base import LRScheduler, Momentum, per_group, set_rate


class CyclicLR(LRScheduler):
    """Rates that go from ``base_lr`` to ``max_lr`` in ``step_size_up`` steps and back in ``step_size_down``.

    Args:
        optimizer: the optimizer whose rates are set.
        base_lr: the lower bound, and the first rate; a list gives each group its own.
        max_lr: the upper bound; a list gives each group its own.
        step_size_up: steps of the first half of a cycle.
        step_size_down: steps of the second half; ``None`` is as many.
        mode: "triangular"; "triangular2", which halves the height each cycle; "exp_range", which scales it by
            ``gamma ** step``.
        gamma: see ``mode``.
        scale_fn: returns the factor of the height, instead of ``mode``, from the number of the cycle or of the step.
        scale_mode: the argument of ``scale_fn``: "cycle" or "iterations".
        cycle_momentum: let the momentum go from ``max_momentum`` to ``base_momentum`` and back.
        base_momentum: the lower bound of the momentum; a list gives each group its own.
        max_momentum: the upper bound of the momentum; a list gives each group its own.
        last_epoch: the epoch to continue from; -1 starts.

    Raises:
        ValueError: the mode is unknown, a list has another length, or the optimizer has no momentum.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.8,
        max_momentum: float | list[float] = 0.9,
        last_epoch: int = -1,
    ) -> None:
        if scale_fn is None and mode not in ("triangular", "triangular2", "exp_range"):
            raise ValueError(f'mode must be "triangular", "triangular2" or "exp_range", and you gave {mode!r}')
        if last_epoch == -1:
            for group, rate in zip(optimizer.param_groups, per_group("base_lr", base_lr, optimizer)):
                group["initial_lr"] = rate
                set_rate(group, rate)
        self.max_lrs = per_group("max_lr", max_lr, optimizer)
        down = step_size_up if step_size_down is None else step_size_down
        self.total_size = float(step_size_up + down)
        self.step_ratio = step_size_up / self.total_size
        self.mode = mode
        self.gamma = gamma
        self.scale_fn = scale_fn
        self.scale_mode = scale_mode if scale_fn or mode != "exp_range" else "iterations"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            Momentum(optimizer)  # raises if there is none
            self.base_momentums = per_group("base_momentum", base_momentum, optimizer)
            self.max_momentums = per_group("max_momentum", max_momentum, optimizer)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        height = self._height()
        if self.cycle_momentum:
            momentum = Momentum(self.optimizer)
            for group, low, high in zip(self.optimizer.param_groups, self.base_momentums, self.max_momentums):
                momentum.set(group, high - (high - low) * height)
        return [base + (most - base) * height for base, most in zip(self.base_lrs, self.max_lrs)]

    def _height(self) -> float:
        """Return the position between the bounds, from 0 to 1, scaled."""
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        place = 1 + self.last_epoch / self.total_size - cycle
        height = place / self.step_ratio if place <= self.step_ratio else (place - 1) / (self.step_ratio - 1)
        return height * self._scale(cycle if self.scale_mode == "cycle" else self.last_epoch)

    def _scale(self, number: float) -> float:
        if self.scale_fn is not None:
            return self.scale_fn(number)
        if self.mode == "triangular":
            return 1.0
        return float(1 / 2.0 ** (number - 1) if self.mode == "triangular2" else self.gamma**number)
