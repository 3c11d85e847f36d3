"""Samples of the stacks of this process's threads, many a second for some seconds: for flame graphs and traces."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType

from ...base.thread_frames import thread_frames
from .records import MOST_CHARACTERS, ObservedFrame
from .thread_waits import is_programs

MOST_SAMPLED_SECONDS = 30.0
MOST_HERTZ = 200.0
MOST_DEPTH = 100  # frames of a stack, the innermost
MOST_RUNS = 50_000  # after so many the sampling ends
MOST_SAMPLED_THREADS = 500
LAUNCHER = f"{Path(__file__).parents[2]}/launcher/"  # it runs the program, and its own main module is none of it


@dataclass(frozen=True, slots=True)
class SampledStacks:
    """Stacks of a process's threads, as a number of looks saw them.

    Attributes:
        worker: name of the worker.
        began: time of the first look, in seconds since the epoch.
        seconds: from the first look to the end.
        times: of each look, in seconds since the first.
        threads: names of the threads.
        frames: functions, each with its first line.
        stacks: the different stacks, as places in ``frames``, the innermost last. The frames outside of the program's are left
            out, and threads in which none of the program's code runs, but for the main thread.
        runs: looks in a row at which a thread had one stack: places of thread and stack, the first look, and how many.
    """

    worker: str
    began: float
    seconds: float
    times: list[float] = field(default_factory=list)
    threads: list[str] = field(default_factory=list)
    frames: list[ObservedFrame] = field(default_factory=list)
    stacks: list[list[int]] = field(default_factory=list)
    runs: list[list[int]] = field(default_factory=list)


def sample_stacks(worker: str, seconds: float, hertz: float, stop: threading.Event) -> SampledStacks:
    """Look at this process's threads again and again, from this thread, which is left out.

    A look takes some 10 microseconds a thread, while the interpreter does nothing else. Code that keeps the interpreter makes
    looks late, not wrong: each has its time.

    Args:
        worker: the worker's name.
        seconds: for so long.
        hertz: looks a second.
        stop: set to end it early.
    """
    sampler, began, now = _Sampler(), time.time(), time.monotonic
    start = now()
    while (passed := now() - start) < seconds and len(sampler.runs) < MOST_RUNS:
        sampler.look(passed)
        ahead = len(sampler.times) / hertz - (now() - start)
        if stop.wait(min(max(ahead, 0.0), seconds)):
            break
    frames = [ObservedFrame(code.co_filename, code.co_firstlineno, _name(code)) for code in sampler.codes]
    return SampledStacks(
        worker,
        began,
        now() - start,
        sampler.times,
        sampler.threads,
        frames,
        [list(each) for each in sampler.stacks],
        sampler.runs,
    )


class _Sampler:
    """Tables of the looks so far."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.threads: list[str] = []
        self.codes: dict[CodeType, int] = {}
        self.stacks: dict[tuple[int, ...], int] = {}
        self.runs: list[list[int]] = []
        self._places: dict[int, int] = {}  # of threads, by their numbers
        self._latest: dict[int, list[int]] = {}  # run of each thread
        self._programs: dict[CodeType, bool] = {}
        self._own = threading.get_ident()
        self._main = threading.main_thread().ident

    def look(self, passed: float) -> None:
        """Note the stacks of now."""
        number = len(self.times)
        self.times.append(round(passed, 6))
        for ident, frame in thread_frames().items():
            if ident != self._own and (codes := self._stack(frame, ident == self._main)):
                stack = tuple(self.codes.setdefault(code, len(self.codes)) for code in codes)
                self._note(ident, self.stacks.setdefault(stack, len(self.stacks)), number)

    def _stack(self, innermost: FrameType, is_main: bool) -> list[CodeType]:
        """Return the code of a thread's frames, the outermost first, from the program's outermost on; of others, nothing."""
        frame: FrameType | None = innermost
        codes: list[CodeType] = []
        programs = 0
        while frame is not None and len(codes) < MOST_DEPTH:
            codes.append(frame.f_code)
            if self._is_programs(frame):
                programs = len(codes)
            frame = frame.f_back
        return codes[: programs or (MOST_DEPTH if is_main else 0)][::-1]

    def _is_programs(self, frame: FrameType) -> bool:
        known = self._programs.get(frame.f_code)
        if known is None:
            known = is_programs(frame) and not frame.f_code.co_filename.startswith(LAUNCHER)
            self._programs[frame.f_code] = known
        return known

    def _note(self, ident: int, stack: int, number: int) -> None:
        thread = self._places.get(ident)
        if thread is None:
            if len(self.threads) >= MOST_SAMPLED_THREADS:
                return
            thread = self._places[ident] = len(self.threads)
            self.threads.append(_thread_name(ident))
        run = self._latest.get(ident)
        if run is not None and run[1] == stack and run[2] + run[3] == number:
            run[3] += 1
            return
        self._latest[ident] = run = [thread, stack, number, 1]
        self.runs.append(run)


def _name(code: CodeType) -> str:
    return str(getattr(code, "co_qualname", code.co_name))[:MOST_CHARACTERS]


def _thread_name(ident: int) -> str:
    names = (each.name for each in threading.enumerate() if each.ident == ident)
    return next(names, "not of Python")[:MOST_CHARACTERS]
