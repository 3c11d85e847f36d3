"""Cores of a job's workers."""

import itertools
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager


def shared_cores(workers: int) -> list[set[int]]:
    """Return the cores of each worker of this machine: equal shares; none if there are fewer cores than workers."""
    cores = sorted(os.sched_getaffinity(0))
    each, more = divmod(len(cores), workers)
    if each == 0:
        return []
    starts = [number * each + min(number, more) for number in range(workers + 1)]
    return [set(cores[start:end]) for start, end in itertools.pairwise(starts)]


@contextmanager
def on_cores(cores: Collection[int]) -> Iterator[None]:
    """Let processes that this thread starts in the block use these cores only; all that it may use itself, if empty."""
    before = os.sched_getaffinity(0)
    if cores:
        os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
