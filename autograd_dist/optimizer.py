"""``DistributedOptimizer``: update parameters on the workers that own them, with the gradients of a context."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from ..core.extend import Tensor
from ..core.futures import Future, collect_all
from ..rpc import functions
from ..rpc.extend import Agent, current_agent
from ..rref import RRef, remote
from .contexts import contexts_of


class StepQueue:
    """Queue that runs the optimizer steps of one agent one at a time. It is not a lock: a step that waits holds no thread."""

    def __init__(self, agent: Agent) -> None:
        self._steps: deque[tuple[Callable[[], None], Future[None]]] = deque()
        self._running = False
        self._lock = threading.Lock()
        self._agent = agent

    def submit(self, step: Callable[[], None]) -> Future[None]:
        """Run ``step`` after those before it, in this thread or in one that runs steps already; returns its future."""
        done: Future[None] = Future()
        self._steps.append((step, done))
        while not done.done() and (job := self._next_step()) is not None:
            self._run(*job)
        if self._steps and not self._running:
            # Others came meanwhile, and more may come for ever: return first, so that the caller of this step gets its answer.
            self._agent.threads.run_later(self._run_rest)
        return done

    def _run_rest(self) -> None:
        while (job := self._next_step()) is not None:
            self._run(*job)

    def _next_step(self) -> tuple[Callable[[], None], Future[None]] | None:
        with self._lock:
            if self._running or not self._steps:
                return None
            self._running = True
            return self._steps.popleft()

    def _run(self, step: Callable[[], None], done: Future[None]) -> None:
        error: BaseException | None = None
        try:
            step()
        except BaseException as problem:
            error = problem
        finally:
            self._running = False
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)


class LocalOptimizer:
    """Optimizer of the parameters of one worker.

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
        self.optimizer = optimizer_class(self.parameters, *args, **kwargs)
        self.hogwild = hogwild

    @functions.async_execution
    def step(self, context_id: int) -> Future[None]:
        """Do one step with the gradients of a context; no other step of this worker runs meanwhile."""
        return current_agent().part(StepQueue).submit(lambda: self._step(context_id))

    def _step(self, context_id: int) -> None:
        gradients = contexts_of(current_agent()).find(context_id).graph.gradients()
        mine = {parameter: gradients[parameter] for parameter in self.parameters if parameter in gradients}
        self.optimizer.step_with(mine, replace=not self.hogwild)


def _parameter(reference: RRef) -> Tensor:
    value = reference.local_value()
    if not isinstance(value, Tensor):
        raise TypeError(f"params_rref must refer to tensors; {reference!r} refers to a {type(value).__name__}")
    return value


class DistributedOptimizer:
    """Optimizer of parameters on many workers (``torch.distributed.optim.DistributedOptimizer``).

    Args:
        optimizer_class: ``optim.SGD``, ``optim.Adam``, ... One is made on every worker that owns a parameter.
        params_rref: references to the parameters.
        args: positional arguments for ``optimizer_class``.
        hogwild: update the parameters' memory in place, so that all who share it see every step at once (Hogwild, Niu et al.
            2011). Otherwise a step replaces a parameter's array, and a backward that is under way sees the values that its
            forward saw.
        kwargs: keyword arguments for ``optimizer_class``.

    Raises:
        TypeError: an element of ``params_rref`` is not an ``RRef``, or its value is not a tensor.
        ValueError: ``params_rref`` is empty.
        Exception: the error of the optimizer's constructor on a worker.

    Example:
        >>> import telegrad as tg
        >>> from telegrad.testing import in_process_cluster
        >>> with in_process_cluster("server", "trainer") as (server, trainer), trainer.use():
        ...     weight = tg.ones(3, requires_grad=True)
        ...     optimizer = tg.DistributedOptimizer(tg.optim.SGD, [tg.RRef(weight)], lr=0.1)
        ...     with tg.autograd_dist.context() as context_id:
        ...         loss = tg.rpc.rpc_sync("server", tg.mul, (weight, 2.0)).sum()
        ...         tg.autograd_dist.backward(context_id, [loss])
        ...         optimizer.step(context_id)
        ...     print(weight.detach())
        tensor([0.8000, 0.8000, 0.8000])
    """

    def __init__(
        self,
        optimizer_class: Callable[..., Any],
        params_rref: Sequence[RRef],
        *args: Any,
        hogwild: bool = False,
        **kwargs: Any,
    ) -> None:
        by_owner: dict[int, list[RRef]] = {}
        for index, reference in enumerate(params_rref):
            if not isinstance(reference, RRef):
                raise TypeError(f"params_rref[{index}] must be an RRef; you gave {type(reference).__name__}")
            by_owner.setdefault(reference.owner().id, []).append(reference)
        if not by_owner:
            raise ValueError("params_rref is empty; give references to the parameters to optimize")
        self.remote_optimizers = [
            remote(rank, LocalOptimizer, (optimizer_class, references, args, kwargs, hogwild))
            for rank, references in by_owner.items()
        ]
        for optimizer in self.remote_optimizers:
            optimizer._get_type()  # waits for the constructor, and raises what it raised

    def step(self, context_id: int) -> None:
        """Update every parameter that has a gradient in the context, on all workers at the same time.

        Args:
            context_id: the id that ``autograd_dist.context()`` gave, after ``backward``.

        Raises:
            RpcError: there is no such context on a worker.
            WorkerLostError: a worker that owns parameters is lost.
        """
        contexts_of(current_agent()).check_not_over(context_id)
        steps = collect_all([optimizer.rpc_async().step(context_id) for optimizer in self.remote_optimizers]).wait()
        errors = [error for step in steps if (error := step.exception()) is not None]
        if errors:
            raise errors[0]
