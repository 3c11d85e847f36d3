"""The events of a profile: calls of operations, ranges, calls to other workers, and changes of tensor memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Interval(NamedTuple):
    """Time from ``start`` to ``end``, in microseconds since the profile began."""

    start: float
    end: float

    def elapsed_us(self) -> float:
        """Return its length in microseconds."""
        return self.end - self.start


@dataclass(eq=False)
class FunctionEvent:
    """One call. Times are in nanoseconds since the profile began; ``end`` is ``None`` until the call ends.

    Attributes:
        name: as PyTorch's: ``aten::add`` of an operation; of a range its own; of a custom function that of its class; of a
            call to another worker ``rpc_sync#f(worker0 -> worker1)``.
        start: when it began.
        thread: identifier of the thread that began it, in its own process.
        input_shapes: shapes of its tensors, if they are recorded.
        end: when it ended.
        children: time of the calls inside it that its thread ran or waited for.
        memory: bytes of tensor memory that it allocated.
        backward: it is part of a backward pass.
        is_async: it does not end in the thread that began it, or others run there meanwhile.
        blocking: its thread waits for it.
        is_remote: another worker sent it.
        node_id: rank of the worker that it happened on; -1 in a process without an agent.
        stack: lines that called it, if they are recorded.
        cpu_parent: the event that it happened inside.
        cpu_children: the events inside it.
    """

    name: str
    start: int
    thread: int
    input_shapes: tuple[Any, ...] = ()
    end: int | None = None
    children: int = 0
    memory: int = 0
    backward: bool = False
    is_async: bool = False
    blocking: bool = False
    is_remote: bool = False
    node_id: int = -1
    stack: list[str] = field(default_factory=list)
    cpu_parent: FunctionEvent | None = field(default=None, repr=False)
    cpu_children: list[FunctionEvent] = field(default_factory=list, repr=False)

    @property
    def count(self) -> int:
        """The number of calls: 1."""
        return 1

    @property
    def time_range(self) -> Interval:
        """Time from its start to its end, in microseconds; of no length until it ends."""
        return Interval(self.start / 1000, (self.start + self.duration) / 1000)

    @property
    def key(self) -> str:
        """Its name, by which sums are made."""
        return self.name

    @property
    def duration(self) -> int:
        """The time that the call took; 0 until it ends."""
        return 0 if self.end is None else self.end - self.start

    @property
    def self_time(self) -> int:
        """``duration`` without that of the calls inside it; 0 of an asynchronous call, which holds no thread."""
        return 0 if self.is_async else max(self.duration - self.children, 0)

    @property
    def cpu_time_total(self) -> float:
        """``duration`` in microseconds."""
        return self.duration / 1000

    @property
    def cpu_time(self) -> float:
        """The same, of one call."""
        return self.cpu_time_total

    @property
    def self_cpu_time_total(self) -> float:
        """``self_time`` in microseconds."""
        return self.self_time / 1000

    @property
    def cpu_memory_usage(self) -> int:
        """``memory``, by its name in PyTorch."""
        return self.memory


@dataclass(frozen=True)
class MemoryEvent:
    """An allocation (``size`` above 0) or a release of tensor memory, in bytes."""

    time: int
    size: int
    thread: int
