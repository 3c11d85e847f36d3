"""The events of a profile: calls of operations, and changes of tensor memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(eq=False)
class FunctionEvent:
    """One call. Times are in nanoseconds since the profile began; ``end`` is ``None`` until the call ends."""

    name: str
    start: int
    thread: int
    input_shapes: tuple[Any, ...] = ()
    end: int | None = None
    children: int = 0  # time of the calls inside
    memory: int = 0  # bytes of tensor memory that it allocated
    backward: bool = False
    is_async: bool = False
    stack: list[str] = field(default_factory=list)

    @property
    def duration(self) -> int:
        """The time that the call took; 0 until it ends."""
        return 0 if self.end is None else self.end - self.start

    @property
    def self_time(self) -> int:
        """``duration`` without that of the calls inside it."""
        return max(self.duration - self.children, 0)


@dataclass(frozen=True)
class MemoryEvent:
    """An allocation (``size`` above 0) or a release of tensor memory, in bytes."""

    time: int
    size: int
    thread: int
