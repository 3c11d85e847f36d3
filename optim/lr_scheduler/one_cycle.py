"""``OneCycleLR``: one increase to a large rate and one decrease to a tiny one (Smith and Topin 2018)."""

from __future__ import annotations

import math

from ..optimizer import Optimizer
from .base import LRScheduler, Momentum, per_group


class OneCycleLR(LRScheduler):
    """Rates that increase to ``max_lr`` once and decrease once, over all steps of a training (``OneCycleLR``).

    Call ``step()`` after every batch.

    Args:
        optimizer: the optimizer whose rates are set.
        max_lr: the largest rate; a list gives each group its own.
        total_steps: number of steps; ``None`` is ``epochs * steps_per_epoch``.
        epochs: see ``total_steps``.
        steps_per_epoch: see ``total_steps``.
        pct_start: the share of the steps in which the rate increases.
        anneal_strategy: "cos" or "linear".
        cycle_momentum: let the momentum go from ``max_momentum`` to ``base_momentum`` and back.
        base_momentum: the lower bound of the momentum; a list gives each group its own.
        max_momentum: the upper bound of the momentum; a list gives each group its own.
        div_factor: the first rate is ``max_lr / div_factor``.
        final_div_factor: the last rate is the first, divided by this.
        three_phase: decrease to the first rate in as many steps as the increase took, and then to the last rate.
        last_epoch: the epoch to continue from; -1 starts.

    Raises:
        ValueError: the number of steps is not given or not positive, an option is out of its range, or the optimizer has no
            momentum.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | list[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85,
        max_momentum: float | list[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        self.total_steps = _total(total_steps, epochs, steps_per_epoch)
        if not 0 <= pct_start <= 1:
            raise ValueError(f"pct_start must be between 0 and 1, and you gave {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f'anneal_strategy must be "cos" or "linear", and you gave {anneal_strategy!r}')
        self._anneal = anneal_strategy
        self._phases = _phases(self.total_steps, pct_start, three_phase)
        self.cycle_momentum = cycle_momentum
        if last_epoch == -1:
            for group, most in zip(optimizer.param_groups, per_group("max_lr", max_lr, optimizer)):
                group.update(initial_lr=most / div_factor, max_lr=most, min_lr=most / div_factor / final_div_factor)
        if cycle_momentum:
            self._begin_momentum(optimizer, base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)

    def _begin_momentum(
        self, optimizer: Optimizer, base: float | list[float], most: float | list[float], last: int
    ) -> None:
        momentum = Momentum(optimizer)
        lows, highs = per_group("base_momentum", base, optimizer), per_group("max_momentum", most, optimizer)
        if last == -1:
            for group, low, high in zip(optimizer.param_groups, lows, highs):
                momentum.set(group, high)
                group.update(max_momentum=high, base_momentum=low)

    def get_lr(self) -> list[float]:
        """Return the rate of each group at ``last_epoch``; sets their momentum too.

        Raises:
            ValueError: there were more steps than ``total_steps``.
        """
        if self.last_epoch > self.total_steps:
            raise ValueError(f"this is step {self.last_epoch}, and OneCycleLR was made for {self.total_steps} of them")
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(self._between(group, 0))
            if self.cycle_momentum:
                Momentum(self.optimizer).set(group, self._between(group, 1))
        return rates

    def _between(self, group: dict[str, float], which: int) -> float:
        number = next((n for n, phase in enumerate(self._phases) if self.last_epoch <= phase[0]), len(self._phases) - 1)
        start = self._phases[number - 1][0] if number else 0.0
        end, *bounds = self._phases[number]
        first, last = (group[name] for name in bounds[which])
        share = (self.last_epoch - start) / (end - start)
        if self._anneal == "linear":
            return first + (last - first) * share
        return last + (first - last) / 2 * (1 + math.cos(math.pi * share))


Bounds = tuple[str, str]


def _phases(total: int, rise: float, three: bool) -> list[tuple[float, Bounds, Bounds]]:
    """Return for each phase its last step, and the first and last rate and momentum, as names of options."""
    up = (rise * total - 1, ("initial_lr", "max_lr"), ("max_momentum", "base_momentum"))
    if not three:
        return [up, (total - 1, ("max_lr", "min_lr"), ("base_momentum", "max_momentum"))]
    return [
        up,
        (2 * rise * total - 2, ("max_lr", "initial_lr"), ("base_momentum", "max_momentum")),
        (total - 1, ("initial_lr", "min_lr"), ("max_momentum", "max_momentum")),
    ]


def _total(total: int | None, epochs: int | None, per_epoch: int | None) -> int:
    if total is None:
        if epochs is None or per_epoch is None:
            raise ValueError("OneCycleLR needs total_steps, or both epochs and steps_per_epoch")
        total = epochs * per_epoch
    if not isinstance(total, int) or total <= 0:
        raise ValueError(f"the number of steps must be a positive integer, and you gave {total!r}")
    return total
