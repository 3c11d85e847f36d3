"""``LocalOptimizer``: part of a distributed optimizer on one worker that owns parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.extend import Tensor, ignore_changes
from ..core.futures import Future
from ..rpc import functions
from ..rpc.extend import current_agent
from ..rref import RRef
from .contexts import contexts_of
from .step_queue import StepQueue


class LocalOptimizer:
    """Optimizer of the parameters of one worker, and its schedulers.

    Unless ``hogwild``, it updates *twins* of the parameters, which are tensors of its own. When a step is complete, each
    parameter gets its twin's array. So other threads that use a parameter never see it change in place.

    Args:
        optimizer_class: see ``DistributedOptimizer``.
        parameters: references to tensors of this worker.
        args: positional arguments for ``optimizer_class``.
        kwargs: keyword arguments for ``optimizer_class``.
        hogwild: see ``DistributedOptimizer``.
    """

    def __init__(
        self, optimizer_class: Callable[..., Any], parameters: Sequence[RRef], args: Any, kwargs: Any, hogwild: bool
    ) -> None:
        self.parameters: list[Tensor] = [_parameter(reference) for reference in parameters]
        self.twins = self.parameters if hogwild else [_twin(parameter) for parameter in self.parameters]
        self.optimizer = optimizer_class(self.twins, *args, **kwargs)
        self.hogwild = hogwild
        for parameter in self.parameters if hogwild else ():
            ignore_changes(parameter)  # backward passes of others go on while a step writes into it
        self.schedulers: list[Any] = []
        self._number = current_agent().part(StepQueue).add(self)

    def number(self) -> int:
        """Return the number by which requests for steps name this optimizer."""
        return self._number

    def step(self, context_id: int) -> Future[None]:
        """Do one step with the gradients of a context. Steps of one worker run one at a time."""
        return current_agent().part(StepQueue).submit(lambda: self._step(context_id))

    def _step(self, context_id: int) -> None:
        gradients = contexts_of(current_agent()).find(context_id).graph.gradients_of(self.parameters)
        rows = [] if self.hogwild else zip(self.parameters, self.twins, gradients)
        moved = [(parameter, twin) for parameter, twin, gradient in rows if gradient is not None]
        for parameter, twin in moved:
            twin._replace(parameter._array.copy())
        # The optimizer's own step, which may be a user's code, reads .grad and writes in place.
        former = [twin._grad for twin in self.twins]  # not .grad, which would copy an array that others share
        try:
            for twin, gradient in zip(self.twins, gradients):
                twin._grad = _as_tensor(gradient)
            self.optimizer.step()
        finally:
            for twin, grad in zip(self.twins, former):
                twin._grad = grad
        for parameter, twin in moved:
            parameter._replace(twin._array)

    # -- schedulers and state

    def schedule(self, scheduler_class: Callable[..., Any], args: Any, kwargs: Any) -> int:
        """Make a scheduler of this optimizer, and return its number.

        Args:
            scheduler_class, args, kwargs: see ``DistributedOptimizer.schedule``.
        """
        self.schedulers.append(scheduler_class(self.optimizer, *args, **kwargs))
        return len(self.schedulers) - 1

    @functions.async_execution
    def call(self, scheduler: int | None, method: str, args: Any) -> Future[Any]:
        """Call a method between steps; the future holds its result.

        Args:
            scheduler: number of the scheduler; ``None`` for the optimizer.
            method: name of the method.
            args: arguments of the method.
        """
        target = self.optimizer if scheduler is None else self.schedulers[scheduler]
        result: list[Any] = []
        done = current_agent().part(StepQueue).submit(lambda: result.append(getattr(target, method)(*args)))
        return done.then(lambda done: done.value() or result[0])


def _as_tensor(gradient: Any) -> Tensor | None:
    return gradient if gradient is None or isinstance(gradient, Tensor) else Tensor(gradient)


def _twin(parameter: Tensor) -> Tensor:
    """Return a leaf over the parameter's array. A parameter that is no leaf is returned: the optimizer refuses it."""
    return parameter.detach().requires_grad_() if parameter.is_leaf else parameter


def _parameter(reference: RRef) -> Tensor:
    value = reference.local_value()
    if not isinstance(value, Tensor):
        raise TypeError(f"params_rref must refer to tensors; {reference!r} refers to a {type(value).__name__}")
    return value
