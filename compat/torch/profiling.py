"""Profiler with steps (``torch.profiler``): ``profile`` records what ``telegrad.profiler.profile`` does, in cycles of steps."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterable
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import Any

from ...core.profiler import EventList, FunctionEvent
from ...core.profiler import profile as recorder
from ...core.profiler import record_function as record_function


class ProfilerActivity(Enum):
    """Kinds of activity to record (``torch.profiler.ProfilerActivity``); there is only the CPU's."""

    CPU = 0
    CUDA = 2


class ProfilerAction(Enum):
    """Ways to treat a step (``torch.profiler.ProfilerAction``). ``RECORD_AND_SAVE`` is the last step of a cycle."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


RECORDS = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)
Schedule = Callable[[int], ProfilerAction]


def supported_activities() -> set[ProfilerActivity]:
    """Return the activities that can be recorded: the CPU's."""
    return {ProfilerActivity.CPU}


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
) -> Schedule:
    """Return a function from a step's number to what is done in it.

    Args:
        wait: steps of a cycle that are not recorded.
        warmup: steps after them, which are not recorded either.
        active: steps after them, which are.
        repeat: number of cycles; 0 for no limit.
        skip_first: steps before the first cycle.
        skip_first_wait: leave ``wait`` out of the first cycle, unless it is 0.

    Raises:
        AssertionError: a number is below 0, or ``active`` is 0, as in PyTorch.
    """
    if min(wait, warmup, repeat, skip_first) < 0 or active <= 0:
        raise AssertionError(
            "wait, warmup, repeat and skip_first must be 0 or more, and active more than 0; "
            f"you gave {(wait, warmup, repeat, skip_first, active)}"
        )
    length = wait + warmup + active

    def action(step: int) -> ProfilerAction:
        place = step - skip_first + (wait if skip_first_wait else 0)
        if step < skip_first or (repeat and place >= repeat * length):
            return ProfilerAction.NONE
        if (place := place % length) < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if place < length - 1 else ProfilerAction.RECORD_AND_SAVE

    return action


def tensorboard_trace_handler(dir_name: str, worker_name: str | None = None) -> Callable[[profile], None]:
    """Return a handler for ``on_trace_ready`` that writes a trace for each cycle into a folder.

    Args:
        dir_name: the folder; it is made.
        worker_name: part of the files' names; this host and process by default.
    """
    name = worker_name or f"{socket.gethostname()}_{os.getpid()}"

    def write(profiled: profile) -> None:
        folder = Path(dir_name)
        folder.mkdir(parents=True, exist_ok=True)
        profiled.export_chrome_trace(folder / f"{name}.{time.time_ns()}.pt.trace.json")

    return write


class profile:  # noqa: N801 - PyTorch's name
    """Records operations and calls to other workers, all of them or in cycles of steps (``torch.profiler.profile``).

    Args:
        activities: not used: only the CPU's are recorded.
        schedule: from the number of a step to what is done in it; ``None`` records until the end.
        on_trace_ready: called with this profile at the end of each cycle.
        record_shapes: record the shapes of each operation's tensors.
        profile_memory: record allocations and releases of tensor memory.
        with_stack: record the lines that called each operation.
        with_flops, with_modules, acc_events, experimental_config, execution_trace_observer: not used.

    Attributes:
        profiler: the ``telegrad.profiler.profile`` of the present cycle, or of the last one.
        step_num: number of steps so far.
    """

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity] | None = None,
        schedule: Schedule | None = None,
        on_trace_ready: Callable[[profile], Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
    ) -> None:
        self._options = {"record_shapes": record_shapes, "profile_memory": profile_memory, "with_stack": with_stack}
        self._schedule = schedule or (lambda step: ProfilerAction.RECORD)
        self.on_trace_ready = on_trace_ready
        self.step_num = 0
        self.profiler = recorder(**self._options)

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.stop()

    def start(self) -> None:
        """Begin with the step of the present number."""
        if self._schedule(self.step_num) in RECORDS:
            self._record()

    def step(self) -> None:
        """End a step of the program, and begin the next."""
        ended = self._schedule(self.step_num)
        self.step_num += 1
        if ended is ProfilerAction.RECORD_AND_SAVE:
            self.stop()
        if self._schedule(self.step_num) in RECORDS and not self.profiler.running:
            self._record()

    def stop(self) -> None:
        """End the present cycle, if it is recorded."""
        if self.profiler.running:
            self.profiler.__exit__(None, None, None)
            if self.on_trace_ready is not None:
                self.on_trace_ready(self)

    def _record(self) -> None:
        self.profiler = recorder(**self._options)
        self.profiler.__enter__()

    def events(self) -> list[FunctionEvent]:
        """Return the events of the last cycle, those of calls to other workers and of their callees too."""
        return self.profiler.function_events

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0) -> EventList:
        """Return counts and sums of the events by name.

        Args:
            group_by_input_shape: keep different shapes apart.
            group_by_stack_n: not used.
        """
        return self.profiler.key_averages(group_by_input_shape)

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Write a file for chrome://tracing and Perfetto.

        Args:
            path: the file.
        """
        self.profiler.export_chrome_trace(path)
