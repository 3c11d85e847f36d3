"""Memory for what arrives: reused when nothing refers to it, never before, and bounded."""

import time

import numpy as np
import pytest
from telegrad.rpc.lanes.large.buffers import WARM_BYTES, Buffers
from telegrad.rpc.lanes.large.lender import IDLE_SECONDS


def place(memory):
    return np.frombuffer(memory, np.uint8).__array_interface__["data"][0]


def test_memory_is_used_again_when_its_last_view_is_gone():
    buffers = Buffers()
    memory = buffers.take(WARM_BYTES)
    where = place(memory)
    view = np.ndarray((4, 5), np.int64, memory).T[1:]
    del memory
    assert len(buffers) == 0 and place(buffers.take(WARM_BYTES)) != where
    del view
    again = buffers.take(WARM_BYTES)
    assert len(again) == WARM_BYTES and where in (place(again), place(buffers.take(WARM_BYTES)))


@pytest.mark.parametrize("size", [0, 1, WARM_BYTES - 1, WARM_BYTES + 1, 3 * WARM_BYTES + 77])
def test_memory_has_the_size_asked_for_and_is_writable(size):
    memory = Buffers().take(size)
    assert len(memory) == size and not memory.readonly


def test_only_so_much_is_kept_and_not_for_long():
    buffers = Buffers(most=3 * WARM_BYTES)
    taken = [buffers.take(WARM_BYTES) for _ in range(5)]
    del taken
    assert len(buffers) == 3
    buffers.trim(time.monotonic())
    assert len(buffers) == 3
    buffers.trim(time.monotonic() + IDLE_SECONDS)
    assert len(buffers) == 0
