"""Schedulers that multiply the rates by a factor: a function, steps, a line, a power or a polynomial."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence

from ..optimizer import Optimizer
from .base import LRScheduler, Schedule, per_group


class LambdaLR(LRScheduler):
    """Rates ``base * lr_lambda(epoch)`` (``torch.optim.lr_scheduler.LambdaLR``).

    Args:
        optimizer: the optimizer whose rates are set.
        lr_lambda: function of the epoch; a list gives each group its own.
        last_epoch: the epoch to continue from; -1 starts.

    Raises:
        ValueError: the list has another length.
    """

    def __init__(self, optimizer: Optimizer, lr_lambda: Schedule | Sequence[Schedule], last_epoch: int = -1) -> None:
        self.lr_lambdas: list[Schedule] = per_group("lr_lambda", lr_lambda, optimizer)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        return [base * function(self.last_epoch) for base, function in zip(self.base_lrs, self.lr_lambdas)]


class MultiplicativeLR(LRScheduler):
    """Rates that each epoch multiplies by ``lr_lambda(epoch)`` (``torch.optim.lr_scheduler.MultiplicativeLR``).

    Args:
        optimizer: the optimizer whose rates are set.
        lr_lambda: function of the epoch; a list gives each group its own.
        last_epoch: the epoch to continue from; -1 starts.

    Raises:
        ValueError: the list has another length.
    """

    def __init__(self, optimizer: Optimizer, lr_lambda: Schedule | Sequence[Schedule], last_epoch: int = -1) -> None:
        self.lr_lambdas: list[Schedule] = per_group("lr_lambda", lr_lambda, optimizer)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self.last_epoch <= 0:
            return self._rates()
        return [rate * function(self.last_epoch) for rate, function in zip(self._rates(), self.lr_lambdas)]


class StepLR(LRScheduler):
    """Rates ``base * gamma ** (epoch // step_size)`` (``torch.optim.lr_scheduler.StepLR``).

    Args:
        optimizer: the optimizer whose rates are set.
        step_size: epochs between two changes.
        gamma: factor of each change.
        last_epoch: the epoch to continue from; -1 starts.
    """

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        falls = self.last_epoch != 0 and self.last_epoch % self.step_size == 0
        return self._scaled(self.gamma if falls else 1)

    def closed_form(self) -> list[float]:
        return [base * self.gamma ** (self.last_epoch // self.step_size) for base in self.base_lrs]


class MultiStepLR(LRScheduler):
    """Rates that are multiplied by ``gamma`` at certain epochs (``torch.optim.lr_scheduler.MultiStepLR``).

    Args:
        optimizer: the optimizer whose rates are set.
        milestones: the epochs; one that is given twice counts twice.
        gamma: factor of each change.
        last_epoch: the epoch to continue from; -1 starts.

    Raises:
        TypeError: ``milestones`` is not a sequence.
    """

    def __init__(
        self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        if not isinstance(milestones, Iterable):
            raise TypeError(f"milestones must be a sequence of epochs, not {type(milestones).__name__}")
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        return self._scaled(self.gamma ** self.milestones.get(self.last_epoch, 0))

    def closed_form(self) -> list[float]:
        passed = bisect_right(sorted(self.milestones.elements()), self.last_epoch)
        return [base * self.gamma**passed for base in self.base_lrs]


class ConstantLR(LRScheduler):
    """Rates ``base * factor`` before epoch ``total_iters``, and ``base`` from then on (``ConstantLR``).

    Args:
        optimizer: the optimizer whose rates are set.
        factor: from 0 to 1.
        total_iters: the epoch of the change.
        last_epoch: the epoch to continue from; -1 starts.

    Raises:
        ValueError: ``factor`` is not from 0 to 1.
    """

    def __init__(
        self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1
    ) -> None:
        _within_0_and_1("factor", factor)
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0:
            return self._scaled(self.factor)
        return self._scaled(1 / self.factor if self.last_epoch == self.total_iters else 1)

    def closed_form(self) -> list[float]:
        factor = 1 if self.last_epoch >= self.total_iters else self.factor
        return [base * factor for base in self.base_lrs]


class LinearLR(LRScheduler):
    """Rates times a factor that goes from ``start_factor`` to ``end_factor`` in equal steps (``LinearLR``).

    Args:
        optimizer: the optimizer whose rates are set.
        start_factor: the factor at epoch 0, above 0 and at most 1.
        end_factor: the last factor, from 0 to 1.
        total_iters: number of steps; then the factor is constant.
        last_epoch: the epoch to continue from; -1 starts.

    Raises:
        ValueError: a factor is out of its range.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 < start_factor <= 1:
            raise ValueError(f"start_factor must be above 0 and at most 1, and you gave {start_factor}")
        _within_0_and_1("end_factor", end_factor)
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0:
            return self._scaled(self.start_factor)
        if self.last_epoch > self.total_iters:
            return self._rates()
        return self._scaled(self._factor(self.last_epoch) / self._factor(self.last_epoch - 1))

    def closed_form(self) -> list[float]:
        return [base * self._factor(min(self.total_iters, self.last_epoch)) for base in self.base_lrs]

    def _factor(self, epoch: int) -> float:
        return self.start_factor + (self.end_factor - self.start_factor) * epoch / self.total_iters


class ExponentialLR(LRScheduler):
    """Rates ``base * gamma ** epoch`` (``torch.optim.lr_scheduler.ExponentialLR``).

    Args:
        optimizer: the optimizer whose rates are set.
        gamma: factor of each epoch.
        last_epoch: the epoch to continue from; -1 starts.
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        return self._scaled(self.gamma if self.last_epoch > 0 else 1)

    def closed_form(self) -> list[float]:
        return [base * self.gamma**self.last_epoch for base in self.base_lrs]


class PolynomialLR(LRScheduler):
    """Rates ``base * (1 - epoch / total_iters) ** power``, and 0 from ``total_iters`` on (``PolynomialLR``).

    Args:
        optimizer: the optimizer whose rates are set.
        total_iters: the epoch at which the rates are 0.
        power: exponent of the polynomial.
        last_epoch: the epoch to continue from; -1 starts.
    """

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0 or self.last_epoch > self.total_iters:
            return self._rates()
        now, then = (1 - epoch / self.total_iters for epoch in (self.last_epoch, self.last_epoch - 1))
        return self._scaled((now / then) ** self.power)

    def closed_form(self) -> list[float]:
        factor = (1 - min(self.total_iters, self.last_epoch) / self.total_iters) ** self.power
        return [base * factor for base in self.base_lrs]


def _within_0_and_1(name: str, factor: float) -> None:
    if not 0 <= factor <= 1:
        raise ValueError(f"{name} must be between 0 and 1, and you gave {factor}")
