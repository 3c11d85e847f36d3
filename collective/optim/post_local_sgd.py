"""``PostLocalSGDOptimizer``: steps of each rank alone, and the mean of the models every so many (T. Lin et al., 2018)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...optim import Optimizer


class PostLocalSGDOptimizer(Optimizer):
    """Optimizer whose steps end with a call of a model averager (``torch.distributed.optim.PostLocalSGDOptimizer``).

    Args:
        optim: the optimizer of this rank.
        averager: its ``average_parameters(groups)`` is called after each step, as that of ``PeriodicModelAverager``.

    Raises:
        TypeError: ``optim`` is no optimizer.
    """

    def __init__(self, optim: Optimizer, averager: Any) -> None:
        if not isinstance(optim, Optimizer):
            raise TypeError(f"optim must be an Optimizer of this rank's parameters; you gave {type(optim).__name__}")
        super().__init__([{**group} for group in optim.param_groups], optim.defaults)
        self.optim = optim
        self.param_groups = optim.param_groups
        self.averager = averager

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Do a step of this rank's optimizer, then let the averager count it.

        Args:
            closure: as for the optimizer.
        """
        with self.step_hooks(closure) as closure:
            result = self.optim.step(closure)
            self.averager.average_parameters(self.param_groups)
        return result

    def _state_dict(self) -> dict[str, Any]:
        return {**self.optim.state_dict(), "step": self.averager.step}

    def _load_state_dict(self, state_dict: Any) -> None:
        self.optim.load_state_dict(state_dict)
        self.averager.step = int(state_dict.get("step", 0))
