"""``LocalOptimizer``: part of a distributed optimizer on one worker that owns parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import methodcaller
from typing import Any

import numpy as np

from ..core.extend import Tensor, ignore_changes
from ..core.futures import Future
from ..rpc import functions
from ..rpc.extend import current_agent, library_of
from ..rref import RRef
from .contexts import contexts_of
from .current_context import current_context
from .edges import as_tensor
from .parameter_trees import Parameters
from .step_queue import StepQueue
from .tree_optimizer import TreeOptimizer


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
        self.parameters: list[Any] = [_parameter(reference) for reference in parameters]
        self.twins = self.parameters if hogwild else [_twin(parameter) for parameter in self.parameters]
        # Of a tensor of ours ``.grad`` would copy an array that others share.
        self._grads = ["_grad" if isinstance(twin, Tensor) else "grad" for twin in self.twins]
        make = partial(TreeOptimizer, optimizer_class) if _are_trees(self.parameters) else optimizer_class
        self.optimizer = make(self.twins, *args, **kwargs)
        self._do_step = _stepper_of(self.parameters)
        self.hogwild = hogwild
        for parameter in [each for each in self.parameters if isinstance(each, Tensor)] if hogwild else ():
            ignore_changes(parameter)  # backward passes of others go on while a step writes into it
        self.schedulers: list[Any] = []
        self._contexts, self._queue = contexts_of(current_agent()), current_agent().part(StepQueue)
        self._number = self._queue.add(self)

    def _identity(self) -> int:
        """Return what tells it from others of this worker: a compiled step compares that, and not its parameters."""
        return self._number

    def number(self) -> int:
        """Return the number by which requests for steps name this optimizer."""
        return self._number

    def step(self, context_id: int) -> Future[None]:
        """Do one step with the gradients of a context. Steps of one worker run one at a time."""
        return self._queue.submit(self._step_in, context_id)

    def step_with(self, gradients: Sequence[Any]) -> Future[None]:
        """Do the same with the gradient of each parameter; ``None`` for those that have none."""
        return self._queue.submit(self._step, gradients)

    def _step_in(self, context_id: int) -> None:
        context = self._contexts.find(context_id)
        current_context.set(context)  # for calls of the optimizer, until the end of the step (``StepQueue.submit``)
        self._step(context.graph.gradients_of(self.parameters))

    def _step(self, gradients: Sequence[Any]) -> None:
        moved, former = [], list[Any]()
        try:
            for parameter, twin, name, gradient in zip(self.parameters, self.twins, self._grads, gradients):
                if gradient is not None and twin is not parameter:  # PyTorch's parameters are their own twins
                    twin._replace(parameter._array.copy())
                    moved.append((parameter, twin))
                former.append(getattr(twin, name))
                setattr(twin, name, Tensor(gradient) if isinstance(gradient, np.ndarray) else gradient)
            self._do_step(self.optimizer)  # may be a user's code, reads .grad and writes in place
        finally:
            for twin, name, grad in zip(self.twins, self._grads, former):
                setattr(twin, name, grad)
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
        done = self._queue.submit(lambda: result.append(getattr(target, method)(*args)))
        return done.then(lambda done: done.value() or result[0])


def _twin(parameter: Any) -> Any:
    """Return a leaf over the parameter's array.

    A parameter that is no leaf is returned: the optimizer refuses it. So is one of PyTorch, whose optimizers write in place: a
    backward over values that were changed raises PyTorch's error.
    """
    if not isinstance(parameter, Tensor) or not parameter.is_leaf:
        return parameter
    return parameter.detach().requires_grad_()


def _parameter(reference: RRef) -> Any:
    value = reference.local_value()
    if type(value) is not Parameters and as_tensor(value) is None:
        raise TypeError(f"params_rref must refer to tensors; {reference!r} refers to a {type(value).__name__}")
    if (library := library_of(value)) is not None and library.name == "jax":
        raise TypeError(
            f"{reference!r} refers to a jax.Array, which gets no gradient; refer to interop.jax.Parameters(array), and give "
            "these to interop.jax.call"
        )
    return value


def _stepper_of(parameters: Sequence[Any]) -> Callable[[Any], object]:
    """Return a function that does a step of an optimizer of these parameters."""
    if (library := library_of(parameters[0])) is None or library.name != "torch":
        return methodcaller("step")
    from .torch_graph.optimizer_steps import do_step  # it imports PyTorch, which is there if a tensor of it is

    return do_step


def _are_trees(parameters: Sequence[Any]) -> bool:
    """Return whether the parameters are trees of arrays, which JAX's optimizers update.

    Raises:
        TypeError: some are, and some are not: no optimizer updates both.
    """
    kinds = {type(parameter) is Parameters for parameter in parameters}
    if len(kinds) > 1:
        raise TypeError(
            f"params_rref refers to trees of JAX and to tensors on worker {current_agent().name!r}; make an optimizer for each"
        )
    return kinds.pop()
