"""``profile``: the operations that run, their times and the memory they allocate (``torch.autograd.profiler``).

It watches the operations of its own thread or task, and puts hooks on the nodes that they make, to time the backward pass.
The event of an asynchronous call ends when its future completes. Of calls to other workers it also has what happened there.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import TracebackType
from typing import Any

from ..autograd.saved_hooks import new_nodes, tensors_in
from ..interception import Watcher, without
from ..tensors import Tensor
from .chrome import write_trace
from .events import FunctionEvent, MemoryEvent
from .names import event_name
from .scope import innermost, profiles, step_in, step_out
from .table import EventList, averages, table

_WATCHED = "telegrad profiler"  # the note on a node that has the hooks


class profile(Watcher):  # noqa: N801 - PyTorch's name
    """Records the operations of the thread (or task) that enters it, until it is left.

    Calls to other workers are recorded with what the callee does for them: its operations and ranges are inside the event
    of the call, on the clock of this process. They are named ``rpc_sync#f(worker0 -> worker1)#remote_op: aten::mul``.

    Args:
        enabled: record nothing if false.
        record_shapes: record the shapes of each operation's tensors.
        profile_memory: record allocations and releases of tensor memory.
        with_stack: record the lines that called each operation.
        use_cpu: has no effect: everything runs on the CPU.

    >>> from telegrad import ones
    >>> with profile() as profiled:
    ...     total = ones(3).sum()
    >>> [event.name for event in profiled.function_events]
    ['aten::ones', 'aten::sum']

    Attributes:
        function_events: the calls, in the order of their starts; those of other workers follow when their call has ended.
        memory_events: with ``profile_memory``; of this process.
        began: when it was entered, in the nanoseconds of ``time.perf_counter_ns``.
        node_id: rank of this worker, once it is known; -1 before.
        running: it has been entered and not left.
        workers: names of the workers that events come from, by rank.
    """

    def __init__(
        self,
        enabled: bool = True,
        *,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        use_cpu: bool = True,
    ) -> None:
        self.enabled = enabled
        self.record_shapes = record_shapes
        self.profile_memory = profile_memory
        self.with_stack = with_stack
        self.function_events: list[FunctionEvent] = []
        self.memory_events: list[MemoryEvent] = []
        self.began = time.perf_counter_ns()
        self.node_id = -1
        self.workers: dict[int, str] = {}
        self._living: set[int] = set()  # ids of the living arrays that were recorded
        self.running = False

    def __enter__(self) -> profile:
        if self.enabled:
            self.began = time.perf_counter_ns()
            self.running = True
            super().__enter__()
        return self

    def watch_here(self) -> None:
        super().watch_here()
        profiles.set((*profiles.get(), self))

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self.running:
            self.running = False
            super().__exit__(kind, error, tb)

    def stop_here(self) -> None:
        super().stop_here()
        profiles.set(without(profiles.get(), self))

    def watch(
        self, run: Callable[[], Any], func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Run an operation and record it; the operations that it calls are recorded inside it.

        Args:
            run: calls the operation.
            func: the operation.
            args: its positional arguments.
            kwargs: its keyword arguments.
        """
        given = {id(tensor._array) for tensor in tensors_in((args, tuple(kwargs.values())))}
        event = self.begin(_name(func), _shapes(args) if self.record_shapes else ())
        try:
            result = run()
        finally:
            self.finish(event)
        for node in new_nodes(result):
            _watch_node(node)
        if self.profile_memory:
            self.record_memory(event, (tensor for tensor in tensors_in(result) if id(tensor._array) not in given))
        return result

    # -- events

    def begin(self, name: str, shapes: tuple[Any, ...] = (), backward: bool = False) -> FunctionEvent:
        """Record the start of a call in this thread or task, inside the current one.

        Args:
            name: of the operation.
            shapes: of its tensors.
            backward: whether it is part of a backward pass.
        """
        event = self._add(FunctionEvent(name, self._now(), threading.get_ident(), shapes, backward=backward))
        if self.with_stack:
            import traceback

            event.stack = [f"{frame.filename}:{frame.lineno}" for frame in traceback.extract_stack()[-8:-3]]
        step_in(self, event)
        return event

    def finish(self, event: FunctionEvent) -> None:
        """Record the end of a call."""
        event.end = self._now()
        step_out(self, event)
        if event.cpu_parent is not None:
            event.cpu_parent.children += event.duration

    def begin_call(self, name: str, blocking: bool) -> FunctionEvent:
        """Record the start of a call that others carry out; what this thread does meanwhile is beside it.

        Args:
            name: of the event.
            blocking: the thread waits for it.
        """
        event = FunctionEvent(name, self._now(), threading.get_ident(), is_async=True, blocking=blocking)
        return self._add(event)

    def end_call(self, event: FunctionEvent) -> None:
        """Record the end of an asynchronous call, unless that was recorded."""
        if event.end is None:
            event.end = self._now()
            if event.blocking and event.cpu_parent is not None:
                event.cpu_parent.children += event.duration

    def make_async(self, event: FunctionEvent) -> None:
        """Let ``end_call`` end an event that began in this thread; what the thread does from now on is beside it."""
        event.is_async = True
        step_out(self, event)

    def adopt(self, call: FunctionEvent, events: Sequence[FunctionEvent]) -> None:
        """Add the events that another worker recorded for a call, inside it.

        Args:
            call: event of the call.
            events: those of the callee, each after its parent; the first is inside the call.
        """
        if events:
            events[0].cpu_parent = call
            call.cpu_children.append(events[0])
            self.function_events.extend(events)

    def at_worker(self, rank: int, name: str) -> None:
        """Note which worker this process is, also in earlier events."""
        if self.node_id != rank:
            self.node_id, self.workers[rank] = rank, name
            for event in self.function_events:
                if not event.is_remote:
                    event.node_id = rank

    def _add(self, event: FunctionEvent) -> FunctionEvent:
        event.node_id, event.cpu_parent = self.node_id, innermost(self)
        # A callback may come when all is over, and again and again: its events have no end then.
        if self.running:
            self.function_events.append(event)
            if event.cpu_parent is not None:
                event.cpu_parent.cpu_children.append(event)
        return event

    def _now(self) -> int:
        return time.perf_counter_ns() - self.began

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_living": set(), "running": False}  # what travels is what was recorded

    # -- memory

    def record_memory(self, event: FunctionEvent, tensors: Iterable[Tensor]) -> None:
        """Record the memory of new tensors, except views and those that an inner operation recorded.

        Args:
            event: the call that made them.
            tensors: its results.
        """
        thread = threading.get_ident()
        for tensor in tensors:
            array = tensor._array
            if array.base is None and id(array) not in self._living:
                self._living.add(id(array))
                event.memory += array.nbytes
                self.memory_events.append(MemoryEvent(self._now(), array.nbytes, thread))
                weakref.finalize(array, self._record_release, id(array), array.nbytes, thread).atexit = False

    def _record_release(self, key: int, size: int, thread: int) -> None:
        self._living.discard(key)
        self.memory_events.append(MemoryEvent(self._now(), -size, thread))

    # -- results

    def key_averages(self, group_by_input_shape: bool = False) -> EventList:
        """Return counts and sums of the calls by name and worker (and shapes); ``.table(...)`` of the result formats them."""
        return averages(self.function_events, group_by_input_shape, self.workers)

    def table(self, sort_by: str | None = None, row_limit: int = 100) -> str:
        """Return ``key_averages().table(sort_by, row_limit)``."""
        return table(self.key_averages(), sort_by, row_limit)

    def __str__(self) -> str:
        return "<unfinished profile>" if self.running else self.table()

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Write a file for chrome://tracing and Perfetto: a list of events, a process for each worker."""
        write_trace(path, self.function_events, self.memory_events, self.workers, self.node_id, self.began)


def _name(func: Any) -> str:
    """Return the name of an operation's event; that of a custom function, whose ``apply`` is watched, is its class's."""
    owner = getattr(func, "__self__", None)
    return event_name(func) if owner is None else str(owner.__name__)


def _watch_node(node: Any) -> None:
    """Let the profiles of the thread that runs a node record it."""
    if _WATCHED in node.metadata:
        return
    node.metadata[_WATCHED] = True
    name, running = node.name(), threading.local()

    def before(_: Any) -> None:
        running.events = [(each, each.begin(name, backward=True)) for each in profiles.get()]

    def after(grad_inputs: tuple[Any, ...], grad_outputs: tuple[Any, ...]) -> None:
        for recorder, event in running.__dict__.pop("events", ()):
            recorder.finish(event)
            if recorder.profile_memory:
                recorder.record_memory(event, _new_gradients(grad_inputs, grad_outputs))

    node._hook_tables().before.add(before)
    node._hook_tables().after.add(after)


def _new_gradients(grad_inputs: tuple[Any, ...], grad_outputs: tuple[Any, ...]) -> Iterator[Tensor]:
    came = {id(grad._array) for grad in tensors_in(grad_outputs)}
    return (grad for grad in tensors_in(grad_inputs) if id(grad._array) not in came)


def _shapes(args: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(
        tuple(arg.shape) if isinstance(arg, Tensor) else _shapes(tuple(arg)) if isinstance(arg, (list, tuple)) else ()
        for arg in args
    )
