"""``SWALR``: rates that go to a last one, for averaged parameters (``nn.utils.AveragedModel``)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..arithmetic import number
from ..optimizer import Optimizer
from .base import LRScheduler, per_group


class SWALR(LRScheduler):
    """Rates that go from the present ones to ``swa_lr`` in ``anneal_epochs`` epochs, and stay there (``SWALR``).

    Args:
        optimizer: the optimizer whose rates are set; each group gets its "swa_lr".
        swa_lr: the last rate; a list gives each group its own.
        anneal_epochs: number of epochs to the last rate.
        anneal_strategy: "cos" for half a cosine, "linear" for a line.
        last_epoch: the epoch to continue from; -1 starts.

    Raises:
        ValueError: the strategy is unknown, or the number of epochs is negative.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float | Sequence[float],
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f'anneal_strategy must be "cos" or "linear", and you gave {anneal_strategy!r}')
        if anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be at least 0, and you gave {anneal_epochs}")
        for group, rate in zip(optimizer.param_groups, per_group("swa_lr", swa_lr, optimizer)):
            group["swa_lr"] = rate
        self.anneal_epochs = anneal_epochs
        self._anneal_strategy = anneal_strategy
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        # Programs may have changed the rates: the first ones are computed from the present ones.
        step = self._step_count - 1 if self.anneal_epochs else max(1, self._step_count - 1)
        before, now = self._share(step - 1), self._share(step)
        return [self._rate(number(group["lr"]), group["swa_lr"], before, now) for group in self.optimizer.param_groups]

    def _share(self, step: int) -> float:
        share = max(0.0, min(1.0, step / max(1, self.anneal_epochs)))
        return share if self._anneal_strategy == "linear" else (1 - math.cos(math.pi * share)) / 2

    def _rate(self, present: float, last: float, before: float, now: float) -> float:
        first = last if before == 1 else (present - before * last) / (1 - before)
        return last * now + first * (1 - now)
