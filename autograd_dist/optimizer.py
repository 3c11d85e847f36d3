"""``DistributedOptimizer``: updates parameters on the workers that own them, with the gradients of a context."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from ..base.errors import RpcError
from ..core.futures import Future, collect_all, copy_error, wait_for_outcomes
from ..rpc.extend import current_agent
from ..rref import RRef, remote
from ..rref.extend import owner_of
from .contexts import Contexts, contexts_of
from .local_optimizer import LocalOptimizer
from .step_requests import request_step


class DistributedOptimizer:
    """Optimizer of parameters on many workers (``torch.distributed.optim.DistributedOptimizer``).

    Args:
        optimizer_class: ``optim.SGD``, ``optim.Adam``, ... One is made on every worker that owns a parameter.
        params_rref: references to the parameters.
        args: positional arguments for ``optimizer_class``.
        hogwild: update the parameters' memory in place, so that all that share it see every step at once (Hogwild, Niu et al.
            2011). Otherwise a step replaces a parameter's array, and a backward that is under way sees the same values as its
            forward.
        kwargs: keyword arguments for ``optimizer_class``.

    Raises:
        TypeError: an element of ``params_rref`` is not an ``RRef``, or its value is not a tensor; or ``optimizer_class`` is no
            class.
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
        if not callable(optimizer_class):
            raise TypeError(f"optimizer_class must be a class, as optim.SGD is; you gave {optimizer_class!r}")
        by_owner = _by_owner(params_rref)
        self.remote_optimizers = [
            remote(rank, LocalOptimizer, (optimizer_class, references, args, kwargs, hogwild))
            # This worker's comes last: it steps in this thread, while the others step.
            for rank, references in sorted(by_owner.items(), key=lambda item: item[1][0].is_owner())
        ]
        self._by_name = {optimizer.owner_name(): optimizer for optimizer in self.remote_optimizers}
        # Wait for the constructors, and raise their errors.
        self._numbers = self._gather(lambda _, optimizer: optimizer.rpc_async().number(), "making the optimizer")
        mine = {name: each.local_value() for name, each in self._by_name.items() if each.is_owner()}
        self._mine: dict[str, LocalOptimizer] = mine  # at most one
        self._others = [name for name in self._by_name if name not in mine]

    def step(self, context_id: int) -> None:
        """Update every parameter that has a gradient in the context, on all workers at the same time.

        A worker whose optimizer raises keeps its parameters as they were. The other workers step.

        Args:
            context_id: the id that ``autograd_dist.context()`` gave, after ``backward``.

        Raises:
            RpcError: there is no such context on a worker; or several workers failed, which it lists.
            WorkerLostError: a worker that owns parameters is lost.
            Exception: the error of an optimizer's step on a worker.
        """
        contexts = contexts_of(current_agent())
        agent = contexts.agent
        contexts.check_not_over(context_id)
        asked = {name: self._request_step(contexts, name, context_id) for name in self._others}
        for name, mine in self._mine.items():  # without a message: this thread would only wait for another one
            done = agent.threads.new_context().run(mine.step, context_id)
            what = f"the optimizer's step on worker {name!r}"
            asked[name] = agent.caller.waits.with_deadline(done, agent.rpc_timeout, what)
        wait_for_outcomes(asked.values())
        check_outcomes(asked, "the step")

    def step_async(self, context_id: int) -> Future[None]:
        """Return the future of ``step``, for ``await``.

        Args:
            context_id: as for ``step``.
        """
        contexts = contexts_of(current_agent())
        contexts.check_not_over(context_id)
        # This worker's own step is a request too, so that another thread does it.
        asked = {name: self._request_step(contexts, name, context_id) for name in self._by_name}
        return collect_all(asked.values()).then(partial(self._stepped, asked))

    def _stepped(self, asked: Mapping[str, Future[Any]], _: object) -> None:
        # A method, so that the future keeps this optimizer: the requests keep no reference to those on the workers.
        check_outcomes(asked, "the step")

    def number_at(self, worker: str) -> int:
        """Return the number of the part of the optimizer on a worker of that name (``StepQueue.add``)."""
        return self._numbers[worker]

    def _request_step(self, contexts: Contexts, name: str, context_id: int) -> Future[None]:
        return request_step(contexts, owner_of(self._by_name[name]), self._numbers[name], context_id)

    # -- learning rates and state

    def schedule(self, scheduler_class: Callable[..., Any], *args: Any, **kwargs: Any) -> DistributedScheduler:
        """Return a scheduler of the learning rates on all workers.

        Args:
            scheduler_class: ``optim.lr_scheduler.StepLR``, ... One is made for each worker's optimizer.
            args: positional arguments for ``scheduler_class``, after the optimizer.
            kwargs: keyword arguments for ``scheduler_class``.

        Raises:
            Exception: the error of the scheduler's constructor on a worker.
        """
        make = self._gather(
            lambda _, each: each.rpc_async().schedule(scheduler_class, args, kwargs), "making the scheduler"
        )
        return DistributedScheduler(self, list(make.values()))

    def state_dict(self) -> dict[str, Any]:
        """Return the ``state_dict`` of each worker's optimizer, by the worker's name."""
        names = self._names()
        return self._call(names, "state_dict", dict.fromkeys(names, ()))

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Load a result of ``state_dict``.

        Args:
            state_dict: for each worker that owns parameters, its optimizer's state.

        Raises:
            ValueError: it has other workers than this optimizer, or a state does not fit.
        """
        names = self._names()
        self._call(names, "load_state_dict", _by_worker(state_dict, names))

    def _names(self) -> dict[str, int | None]:
        return dict.fromkeys(self._by_name)

    def _call(self, targets: Mapping[str, int | None], method: str, args: Mapping[str, Any]) -> dict[str, Any]:
        def ask(name: str, optimizer: RRef) -> Future[Any]:
            return optimizer.rpc_async().call(targets[name], method, args[name])

        return self._gather(ask, method)

    def _gather(self, ask: Callable[[str, RRef], Future[Any]], what: str) -> dict[str, Any]:
        """Ask every worker at the same time, and return the answers by the workers' names.

        Raises:
            Exception: the error, if one worker failed, or if all errors are the same.
            RpcError: several workers failed; it lists their errors.
        """
        futures = {name: ask(name, optimizer) for name, optimizer in self._by_name.items()}
        wait_for_outcomes(futures.values())
        return results_of(futures, what)


class DistributedScheduler:
    """Schedulers of the learning rates of a ``DistributedOptimizer``, one on each worker that owns parameters.

    Args:
        optimizer: the optimizer.
        numbers: the number of the scheduler on each of its workers.
    """

    def __init__(self, optimizer: DistributedOptimizer, numbers: Sequence[int]) -> None:
        self._optimizer = optimizer
        self._numbers = dict(zip(optimizer._by_name, numbers))

    def step(self, *args: Any) -> None:
        """Do a step of every scheduler. No optimizer steps on the same worker at the same time.

        Args:
            args: arguments of the schedulers' ``step``: the metric for ``ReduceLROnPlateau``.
        """
        self._call("step", args)

    def get_last_lr(self) -> dict[str, list[float]]:
        """Return the current learning rates of each worker's groups, by the worker's name."""
        return self._call("get_last_lr", ())

    def state_dict(self) -> dict[str, Any]:
        """Return the ``state_dict`` of each worker's scheduler, by the worker's name."""
        return self._call("state_dict", ())

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Load a result of ``state_dict``.

        Args:
            state_dict: for each worker that owns parameters, its scheduler's state.

        Raises:
            ValueError: it has other workers than this scheduler.
        """
        self._optimizer._call(self._numbers, "load_state_dict", _by_worker(state_dict, self._numbers))

    def _call(self, method: str, args: Any) -> dict[str, Any]:
        return self._optimizer._call(self._numbers, method, dict.fromkeys(self._numbers, args))


def _by_owner(params_rref: Sequence[RRef]) -> dict[int, list[RRef]]:
    if not isinstance(params_rref, Iterable):
        raise TypeError(f"params_rref must be a list of RRefs; you gave {type(params_rref).__name__}")
    by_owner: dict[int, list[RRef]] = {}
    for index, reference in enumerate(params_rref):
        if not isinstance(reference, RRef):
            raise TypeError(f"params_rref[{index}] must be an RRef; you gave {type(reference).__name__}")
        by_owner.setdefault(reference.owner().id, []).append(reference)
    if not by_owner:
        raise ValueError("params_rref is empty; give references to the parameters to optimize")
    return by_owner


def results_of(answers: Mapping[str, Future[Any]], what: str) -> dict[str, Any]:
    """Return the values of completed futures.

    Args:
        answers, what: see ``check_outcomes``.

    Raises:
        Exception: see ``check_outcomes``.
    """
    check_outcomes(answers, what)
    return {name: future.value() for name, future in answers.items()}


def check_outcomes(answers: Mapping[str, Future[Any]], what: str) -> None:
    """Raise the errors of completed futures.

    Args:
        answers: the futures, by the names of workers.
        what: names what they are for, in the error.

    Raises:
        Exception: the error, if one worker failed, or if all errors are the same.
        RpcError: several workers failed; it lists their errors.
    """
    errors = {name: error for name, future in answers.items() if (error := future.exception()) is not None}
    if not errors:
        return
    if len({(type(error), str(error)) for error in errors.values()}) > 1:
        listed = "; ".join(f"on {name!r} {type(error).__name__}: {error}" for name, error in errors.items())
        raise RpcError(f"{what} failed on {len(errors)} workers: {listed}") from next(iter(errors.values()))
    # A copy: the traceback refers to frames that have the futures, and with these the error itself. That would be a cycle.
    error = next(iter(errors.values()))
    raise copy_error(error).with_traceback(error.__traceback__)


def _by_worker(state_dict: Mapping[str, Any], numbers: Mapping[str, Any]) -> dict[str, Any]:
    if sorted(state_dict) != sorted(numbers):
        raise ValueError(f"state_dict has the workers {sorted(state_dict)}; it must have {sorted(numbers)}")
    return {name: (state,) for name, state in state_dict.items()}
