"""Freed memory of malloc is kept while large frames travel, and given back afterwards."""

import os
import sys

import pytest

PROGRAM = """
import resource, time
from telegrad.rpc.lanes.large.heap import HEAP, IDLE_SECONDS

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    chunks = [bytes([1]) * (2 << 20) for _ in range(16)]
    del chunks
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

pages = (32 << 20) // resource.getpagesize()
print(min(faults() for _ in range(4)) > pages / 4, bool(HEAP))
HEAP.keep()
print(min(faults() for _ in range(4)) > pages / 4, bool(HEAP))
HEAP.trim(time.monotonic() + IDLE_SECONDS / 2)
print(faults() > pages / 4, bool(HEAP))
HEAP.trim(time.monotonic() + IDLE_SECONDS)
print(faults() > pages / 4, bool(HEAP))
"""


def without_options():
    return {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_"))}


@pytest.mark.skipif(sys.platform != "linux" or not os.confstr("CS_GNU_LIBC_VERSION"), reason="glibc only")
def test_freed_memory_is_kept_for_a_minute(run_python):
    lines = run_python("-c", PROGRAM, env=without_options()).splitlines()
    assert lines == ["True False", "False True", "False True", "True False"]


def test_what_the_user_has_set_stays(run_python):
    lines = run_python("-c", PROGRAM, env={**without_options(), "MALLOC_ARENA_MAX": "3"}).splitlines()
    assert {line.split()[1] for line in lines} == {"False"}


def test_a_job_without_such_frames_changes_nothing(run_python):
    program = "import telegrad.rpc; from telegrad.rpc.lanes.large.heap import HEAP, _set_thresholds; "
    program += "HEAP.trim(1e9); print(bool(HEAP), _set_thresholds.cache_info().currsize)"
    assert run_python("-c", program).split() == ["False", "0"]
