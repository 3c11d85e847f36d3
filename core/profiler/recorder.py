"""``profile``: the operations that run, their times and the memory they allocate (``torch.autograd.profiler``).

It watches the operations of its own thread or task, and puts hooks on the nodes that they make, to time the backward pass.
The event of an asynchronous call ends when its future completes.
"""

from __future__ import annotations

import functools
import json
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar, Token
from types import TracebackType
from typing import Any, TypeVar

from ..autograd.saved_hooks import new_nodes, tensors_in
from ..futures import Future
from ..interception import Watcher
from ..tensors import Tensor
from .events import FunctionEvent, MemoryEvent
from .table import EventList, averages, table

T = TypeVar("T")


_current: ContextVar[profile | None] = ContextVar("telegrad_profile", default=None)


class profile(Watcher):  # noqa: N801 - PyTorch's name
    """Records the operations of the thread (or task) that enters it, until it is left.

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
    ['ones', 'sum']

    Attributes:
        function_events: the calls, in the order of their starts.
        memory_events: with ``profile_memory``.
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
        self._living: set[int] = set()  # ids of the living arrays that were recorded
        self._open = threading.local()
        self._began = time.perf_counter_ns()
        self._token: Token[profile | None] | None = None

    def __enter__(self) -> profile:
        if self.enabled:
            self._began = time.perf_counter_ns()
            self._token = _current.set(self)
            super().__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._token is not None:
            super().__exit__(kind, error, tb)
            _current.reset(self._token)
            self._token = None

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
        # The name of a custom function is that of its class.
        event = self.begin(getattr(func, "__self__", func).__name__, _shapes(args) if self.record_shapes else ())
        try:
            result = run()
        finally:
            self.finish(event)
        for node in new_nodes(result):
            if self not in node.metadata:
                node.metadata[self] = True
                self._watch(node)
        if self.profile_memory:
            self._record_memory(event, (tensor for tensor in tensors_in(result) if id(tensor._array) not in given))
        return result

    # -- events

    @property
    def _stack(self) -> list[FunctionEvent]:
        if not hasattr(self._open, "stack"):
            self._open.stack = []
        return self._open.stack

    def begin(self, name: str, shapes: tuple[Any, ...] = (), backward: bool = False) -> FunctionEvent:
        """Record the start of a call in this thread, inside the current one.

        Args:
            name: of the operation.
            shapes: of its tensors.
            backward: whether it is part of a backward pass.
        """
        event = FunctionEvent(name, self._now(), threading.get_ident(), shapes, backward=backward)
        if self.with_stack:
            import traceback

            event.stack = [f"{frame.filename}:{frame.lineno}" for frame in traceback.extract_stack()[-8:-3]]
        self.function_events.append(event)
        self._stack.append(event)
        return event

    def finish(self, event: FunctionEvent) -> None:
        """Record the end of a call."""
        event.end = self._now()
        stack = self._stack
        if event in stack:
            del stack[stack.index(event) :]
        if stack:
            stack[-1].children += event.duration

    def end_with(self, event: FunctionEvent, future: Future[T]) -> Future[T]:
        """Let ``event`` end when ``future`` completes, in any thread; return a future of its value that completes after."""
        stack = self._stack
        if event in stack:
            stack.remove(event)
        event.is_async = True

        def ended(done: Future[T]) -> T:
            event.end = self._now()
            return done.value()

        return future.then(ended)

    def _now(self) -> int:
        return time.perf_counter_ns() - self._began

    # -- memory

    def _record_memory(self, event: FunctionEvent, tensors: Iterable[Tensor]) -> None:
        """Record the memory of new tensors, except views and those that an inner operation recorded."""
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

    def _watch(self, node: Any) -> None:
        name, running = node.name(), threading.local()

        def before(_: Any) -> None:
            running.event = self.begin(name, backward=True)

        def after(grad_inputs: tuple[Any, ...], grad_outputs: tuple[Any, ...]) -> None:
            event, running.event = getattr(running, "event", None), None
            if event is not None:
                self.finish(event)
                if self.profile_memory:
                    self._record_memory(event, _new_gradients(grad_inputs, grad_outputs))

        node._hook_tables().before.add(before)
        node._hook_tables().after.add(after)

    # -- results

    def key_averages(self, group_by_input_shape: bool = False) -> EventList:
        """Return counts and sums of the calls by name (and shapes); ``.table(...)`` of the result formats them."""
        return averages(self.function_events, group_by_input_shape)

    def table(self, sort_by: str | None = None, row_limit: int = 100) -> str:
        """Return ``key_averages().table(sort_by, row_limit)``."""
        return table(self.key_averages(), sort_by, row_limit)

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Write a file for chrome://tracing and Perfetto."""
        events: list[dict[str, Any]] = [
            {
                "name": event.name,
                "ph": "X",
                "cat": "backward" if event.backward else "async" if event.is_async else "forward",
                "ts": event.start / 1000,
                "dur": event.duration / 1000,
                "pid": os.getpid(),
                "tid": event.thread,
                "args": {"shapes": str(event.input_shapes), "memory": event.memory},
            }
            for event in self.function_events
        ]
        total = 0
        for change in sorted(self.memory_events, key=lambda change: change.time):
            total += change.size
            counter = {"ph": "C", "ts": change.time / 1000, "pid": os.getpid(), "args": {"bytes": total}}
            events.append({"name": "tensor memory", **counter})
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"traceEvents": events}, file)


class record_function:  # noqa: N801 - PyTorch's name
    """Names a part of a program in the current profile: a ``with`` block, or a decorator."""

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = name
        self._entered: list[tuple[profile, FunctionEvent] | None] = []

    def __enter__(self) -> record_function:
        current = _current.get()
        self._entered.append(None if current is None else (current, current.begin(self.name)))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        entered = self._entered.pop()
        if entered is not None and not entered[1].is_async:
            entered[0].finish(entered[1])

    def __call__(self, function: Callable[..., T]) -> Callable[..., T]:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> T:
            with record_function(self.name):
                return function(*args, **kwargs)

        return wrapper

    def _call_end_callbacks_on_future(self, fut: Future[T]) -> Future[T]:
        """Let the event of the current block end when ``fut`` completes, and not with the block."""
        if not self._entered or self._entered[-1] is None:
            return fut
        current, event = self._entered[-1]
        return current.end_with(event, fut)


def _new_gradients(grad_inputs: tuple[Any, ...], grad_outputs: tuple[Any, ...]) -> Iterator[Tensor]:
    came = {id(grad._array) for grad in tensors_in(grad_outputs)}
    return (grad for grad in tensors_in(grad_inputs) if id(grad._array) not in came)


def _shapes(args: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(
        tuple(arg.shape) if isinstance(arg, Tensor) else _shapes(tuple(arg)) if isinstance(arg, (list, tuple)) else ()
        for arg in args
    )
