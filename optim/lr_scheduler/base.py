"""``LRScheduler``: the base class of schedulers, which set the learning rates of an optimizer's groups."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from ...core.extend import Tensor
from ..arithmetic import number
from ..optimizer import Group, Optimizer


class LRScheduler:
    """Base class of all schedulers (``torch.optim.lr_scheduler.LRScheduler``).

    A subclass defines ``get_lr``, which computes the rates at ``last_epoch`` from the present ones; so schedulers can be
    chained, and programs may change rates. Where a rate is a function of the epoch, ``closed_form`` computes it.

    Args:
        optimizer: the optimizer whose groups' "lr" is set. Their first rates are kept in the groups as "initial_lr".
        last_epoch: the epoch to continue from; -1 starts.

    Attributes:
        base_lrs: the first rate of each group.
        last_epoch: number of steps so far.

    Raises:
        TypeError: ``optimizer`` is not an optimizer.
        KeyError: ``last_epoch`` is given, and a group has no "initial_lr".

    Example:
        >>> import telegrad as tg
        >>> optimizer = tg.optim.SGD([tg.ones(1, requires_grad=True)], lr=1.0)
        >>> scheduler = tg.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
        >>> for epoch in range(4):
        ...     optimizer.step()
        ...     scheduler.step()
        >>> scheduler.get_last_lr()
        [0.25]
    """

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(self).__name__} needs an optimizer, not {type(optimizer).__name__}")
        self.optimizer = optimizer
        for place, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", number(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param_groups[{place}] has no 'initial_lr', which going on from epoch {last_epoch} needs; "
                    "load the optimizer's state first"
                )
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._step_count = 0
        self._steps_before = optimizer._steps
        self._begin()

    def _begin(self) -> None:
        self._step_count = 0
        self.step()

    # -- defined by subclasses

    def get_lr(self) -> list[float]:
        """Return the rate of each group at ``last_epoch``, computed from the present rates."""
        raise NotImplementedError(f"{type(self).__name__} must define get_lr()")

    def closed_form(self) -> list[float]:
        """Return the rate of each group at ``last_epoch``, computed from the first rates."""
        return self.get_lr()

    # -- stepping

    def step(self, epoch: int | None = None) -> None:
        """Go to the next epoch and set the rates.

        Args:
            epoch: the epoch to go to instead.
        """
        if self._step_count == 1 and self.optimizer._steps == self._steps_before:
            warnings.warn(
                "lr_scheduler.step() was called before optimizer.step(), so the first rate is never used; "
                "call optimizer.step() first",
                stacklevel=2,
            )
        self._step_count += 1
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        self._set(self.get_lr() if epoch is None else self.closed_form())

    def _set(self, rates: list[float]) -> None:
        for group, rate in zip(self.optimizer.param_groups, rates):
            set_rate(group, rate)
        self._last_lr = self._rates()

    def get_last_lr(self) -> list[float]:
        """Return the rate of each group that the last step set."""
        return self._last_lr

    def _rates(self) -> list[float]:
        return [number(group["lr"]) for group in self.optimizer.param_groups]

    def _scaled(self, factor: float) -> list[float]:
        return [rate * factor for rate in self._rates()]

    # -- state

    def state_dict(self) -> dict[str, Any]:
        """Return the state, without the optimizer; of functions, only the attributes of callable objects."""
        kept = {name: value for name, value in vars(self).items() if name not in ("optimizer", "_steps_before")}
        return {name: _saved(value) for name, value in kept.items()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load the state that the ``state_dict`` of a scheduler of the same class returned."""
        for name, value in state_dict.items():
            if name == "lr_lambdas":
                for function, attributes in zip(self.lr_lambdas, value):  # type: ignore[attr-defined]
                    if attributes is not None:
                        vars(function).update(attributes)
            elif value is not None or not callable(getattr(self, name, None)):
                setattr(self, name, value)


def _saved(value: Any) -> Any:
    if isinstance(value, list) and any(callable(item) for item in value):
        return [None if type(item) is type(_saved) else dict(vars(item)) for item in value]
    return None if callable(value) else value


def per_group(name: str, value: Any, optimizer: Optimizer) -> list[Any]:
    """Return ``value`` for each group: one for all, or a list with one for each.

    Args:
        name: the option, for the error.
        value: its value, or a list of values.
        optimizer: the optimizer whose groups are meant.

    Raises:
        ValueError: the list has another length.
    """
    count = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        return [value] * count
    if len(value) != count:
        raise ValueError(f"{name} must be one value, or {count}, one for each group; you gave {len(value)}")
    return list(value)


class Momentum:
    """Momentum of an optimizer's groups: their option "momentum", or the first of "betas".

    Raises:
        ValueError: the optimizer has neither.
    """

    def __init__(self, optimizer: Optimizer) -> None:
        self._in_betas = "betas" in optimizer.defaults
        if not self._in_betas and "momentum" not in optimizer.defaults:
            raise ValueError(f"{type(optimizer).__name__} has no momentum to cycle; pass cycle_momentum=False")

    def set(self, group: Group, value: float) -> None:
        """Set the momentum of a group."""
        if self._in_betas:
            group["betas"] = (value, *group["betas"][1:])
        else:
            group["momentum"] = value


Schedule = Callable[[int], float]


def set_rate(group: Group, rate: float) -> None:
    """Set the rate of ``group``; a tensor is filled, because others may refer to it."""
    if isinstance(group["lr"], Tensor):
        group["lr"].fill_(rate)
    else:
        group["lr"] = rate


class _LRScheduler(LRScheduler):
    """``LRScheduler`` under its former name, for classes of programs that are derived from it."""
