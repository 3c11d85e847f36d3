"""Combinations of schedulers of one optimizer: one after the other, or all in each step."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from ..optimizer import Optimizer
from .base import LRScheduler, set_rate
from .plateau import ReduceLROnPlateau


class _Combined(LRScheduler):
    """Base class: schedulers of one optimizer, and their state.

    Raises:
        ValueError: they are not all of this optimizer.
    """

    def __init__(self, optimizer: Optimizer, schedulers: Sequence[LRScheduler]) -> None:
        for number, scheduler in enumerate(schedulers):
            if scheduler.optimizer is not optimizer:
                raise ValueError(f"schedulers[{number}] is of another optimizer than the others")
            if isinstance(scheduler, ReduceLROnPlateau):
                raise ValueError(f"schedulers[{number}] needs a measure in each step; call its step() yourself")
        self.optimizer = optimizer
        self._schedulers = list(schedulers)

    def state_dict(self) -> dict[str, Any]:
        state = {name: value for name, value in vars(self).items() if name not in ("optimizer", "_schedulers")}
        return {**state, "_schedulers": [scheduler.state_dict() for scheduler in self._schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        for scheduler, state in zip(self._schedulers, state_dict["_schedulers"]):
            scheduler.load_state_dict(state)
        vars(self).update({name: value for name, value in state_dict.items() if name != "_schedulers"})


class SequentialLR(_Combined):
    """Scheduler that uses other schedulers one after the other (``torch.optim.lr_scheduler.SequentialLR``).

    Args:
        optimizer: the optimizer whose rates are set.
        schedulers: schedulers of this optimizer.
        milestones: the epochs at which the second and each further scheduler starts.
        last_epoch: the epoch to continue from; -1 starts.

    Raises:
        ValueError: there are not as many milestones as schedulers but one, or the schedulers have different optimizers.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: Sequence[LRScheduler],
        milestones: Sequence[int],
        last_epoch: int = -1,
    ) -> None:
        if not schedulers:
            raise ValueError("SequentialLR needs at least one scheduler")
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                f"{len(schedulers)} schedulers need {len(schedulers) - 1} milestones, and you gave {len(milestones)}"
            )
        super().__init__(optimizer, schedulers)
        self._milestones = list(milestones)
        self.last_epoch = last_epoch + 1
        # Each scheduler took its first step when it was made; undo those of all but the first.
        for group in optimizer.param_groups:
            set_rate(group, group["initial_lr"])
        _take_back(self)
        self._schedulers[0]._begin()
        self._last_lr = self._schedulers[0].get_last_lr()

    def _begin(self) -> None:
        self.last_epoch += 1
        self._schedulers[0]._begin()
        self._last_lr = self._schedulers[0].get_last_lr()

    def step(self, epoch: int | None = None) -> None:
        """Step the scheduler of the present epoch."""
        self.last_epoch += 1
        turn = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[turn]
        if turn and self._milestones[turn - 1] == self.last_epoch:
            scheduler.step(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


class ChainedScheduler(_Combined):
    """Scheduler that applies all of its schedulers in each step (``torch.optim.lr_scheduler.ChainedScheduler``).

    Each one changes the rates that the one before it set.

    Args:
        schedulers: schedulers of one optimizer.
        optimizer: that optimizer; ``None`` takes it from the first scheduler.

    Raises:
        ValueError: there are no schedulers, or they have different optimizers.
    """

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> None:
        if not schedulers:
            raise ValueError("ChainedScheduler needs at least one scheduler")
        super().__init__(optimizer or schedulers[0].optimizer, schedulers)
        self._last_lr = self._rates()

    def step(self, epoch: int | None = None) -> None:
        """Step all schedulers."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = self._rates()


def _take_back(scheduler: LRScheduler) -> None:
    for inner in getattr(scheduler, "_schedulers", ()):
        inner.last_epoch -= 1
        _take_back(inner)
