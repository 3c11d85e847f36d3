"""Schedulers that decrease the rates along half a cosine, once or repeatedly (Loshchilov and Hutter 2017)."""

from __future__ import annotations

import math

from ..optimizer import Optimizer
from .base import LRScheduler


class CosineAnnealingLR(LRScheduler):
    """Rates ``eta_min + (base - eta_min) * (1 + cos(pi * epoch / T_max)) / 2`` (``CosineAnnealingLR``).

    Args:
        optimizer: the optimizer whose rates are set.
        T_max: epochs from the first rate to ``eta_min``.
        eta_min: the lowest rate.
        last_epoch: the epoch to continue from; -1 starts.
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:  # noqa: N803
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0:
            return self._rates()
        if self._step_count == 1:
            return self.closed_form()
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:
            # The former rate was eta_min, and a multiple of its distance to eta_min stays 0.
            rise = (1 - math.cos(math.pi / self.T_max)) / 2
            return [rate + (base - self.eta_min) * rise for rate, base in zip(self._rates(), self.base_lrs)]
        now, then = (1 + math.cos(math.pi * at / self.T_max) for at in (self.last_epoch, self.last_epoch - 1))
        return [now / then * (rate - self.eta_min) + self.eta_min for rate in self._rates()]

    def closed_form(self) -> list[float]:
        share = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2
        return [self.eta_min + (base - self.eta_min) * share for base in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Rates that decrease along half a cosine, and start again after each cycle (``CosineAnnealingWarmRestarts``).

    Args:
        optimizer: the optimizer whose rates are set.
        T_0: epochs of the first cycle.
        T_mult: each cycle is this many times as long as the one before it.
        eta_min: the lowest rate.
        last_epoch: the epoch to continue from; -1 starts.

    Raises:
        ValueError: ``T_0`` or ``T_mult`` is not a positive integer.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,  # noqa: N803
        T_mult: int = 1,  # noqa: N803
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        for name, value in (("T_0", T_0), ("T_mult", T_mult)):
            if not isinstance(value, int) or value < 1:
                raise ValueError(f"{name} must be a positive integer, and you gave {value!r}")
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        share = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * share for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Go to the next epoch and set the rates.

        Args:
            epoch: the epoch to go to instead; it may be fractional.

        Raises:
            ValueError: ``epoch`` is negative.
        """
        if epoch is None and self.last_epoch < 0:
            epoch = 0.0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur -= self.T_i
                self.T_i *= self.T_mult
        elif epoch < 0:
            raise ValueError(f"epoch must not be negative, and you gave {epoch}")
        else:
            self._go_to(epoch)
        self._step_count += 1
        self.last_epoch = math.floor(epoch)
        self._set(self.get_lr())

    def _go_to(self, epoch: float) -> None:
        if self.T_mult == 1:
            self.T_i, self.T_cur = self.T_0, epoch % self.T_0
            return
        # The cycles before this one took T_0 * (T_mult**n - 1) / (T_mult - 1) epochs.
        n = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
        self.T_i = self.T_0 * self.T_mult**n
        self.T_cur = epoch - self.T_0 * (self.T_mult**n - 1) / (self.T_mult - 1)
