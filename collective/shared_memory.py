"""``SharedReduction``: large ``all_reduce``s of ranks on one host, through a segment of memory of each that all map.

An array goes through in slices of 4 MiB. For each slice a rank copies its elements into its own segment, combines one chunk
of all segments, and copies the other chunks of the result. So an element is copied once into shared memory and once out of
it, and no message carries any.

Each segment begins with two counters, which only its owner writes: how many slices it has *copied*, and how many chunks it has
*combined*. Slices use two halves of a segment in turn. A rank may overwrite a half when all have copied the slice after it:
they have read the results of the one before by then.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence

import numpy as np

from ..core.extend import Array
from ..core.shared_memory import Address, Segment, create_segment, open_segment
from .reduction import ReduceOp, combine_into

SLICE_BYTES = 4 * 1024 * 1024
PAGE = 4096
COPIED, COMBINED = 0, 1  # places of the counters
SPINS = 50  # questions that yield the processor, before those that sleep
SLEEP_SECONDS = 50e-6
CHECK_SECONDS = 1e-3  # from one look at the others' lives to the next


def host_identity() -> str | None:
    """Return a text that is equal for processes that can map one another's segments; ``None`` if that cannot be told."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            boot = file.read().strip()
        spaces = [os.readlink(f"/proc/self/ns/{kind}") for kind in ("pid", "net", "user")]
    except OSError:
        return None
    return " ".join([boot, *spaces, str(os.geteuid())])


def open_shared(address: Address) -> Segment | None:
    """Return the segment of another process; ``None`` if this one may not map it."""
    try:
        return open_segment(address.open(os.O_RDWR))
    except (OSError, ValueError):
        return None


class SharedReduction:
    """Segments of all members of a group, as one member sees them.

    Args:
        segments: in the order of the members; all of ``new_segment``.
        index: of this member.
    """

    def __init__(self, segments: Sequence[Segment], index: int) -> None:
        self._index = index
        self._segments = list(segments)
        self._counters = [segment.array(np.int64, (2,)) for segment in segments]
        self._slices = 0  # begun so far
        self._fence = threading.Lock()

    def all_reduce(
        self, array: Array, op: ReduceOp, agree: Callable[[int], int], check: Callable[[list[int]], None]
    ) -> None:
        """Replace everybody's array by the combination of all. One call at a time, in the same order on all members.

        Args:
            array: C-contiguous, of one dimension.
            op: how to combine.
            agree: gets this member's number of slices, and returns the largest of all members when all have come to equal
                arrays. The numbers differ if an earlier call failed.
            check: called now and then with the indices of the members that are waited for; raises if that is in vain.
        """
        self._slices = agree(self._slices)
        step = SLICE_BYTES // array.itemsize
        for start in range(0, array.size, step):
            part = array[start : start + step]
            self._begin(part)
            self._await(COPIED, check)
            self._combine(part, op)
            self._await(COMBINED, check)
            self._finish(part)

    def _begin(self, part: Array) -> None:
        self._slices += 1
        np.copyto(self._half(self._index, part), part)
        self._count(COPIED)

    def _combine(self, part: Array, op: ReduceOp) -> None:
        mine = self._chunk(part)
        rows = [self._half(member, part)[mine] for member in range(len(self._segments))]
        combine_into(part[mine], rows, op)
        np.copyto(rows[self._index], part[mine])  # the others take it from there
        self._count(COMBINED)

    def _finish(self, part: Array) -> None:
        for member in range(len(self._segments)):
            if member != self._index:
                place = self._chunk(part, member)
                np.copyto(part[place], self._half(member, part)[place])

    def _half(self, member: int, part: Array) -> Array:
        offset = PAGE + self._slices % 2 * SLICE_BYTES
        return self._segments[member].array(part.dtype, (part.size,), offset)

    def _chunk(self, part: Array, member: int | None = None) -> slice:
        number, count = self._index if member is None else member, len(self._segments)
        return slice(part.size * number // count, part.size * (number + 1) // count)

    def _count(self, counter: int) -> None:
        with self._fence:  # a lock's release makes what was written before visible first
            pass
        self._counters[self._index][counter] = self._slices

    def _await(self, counter: int, check: Callable[[list[int]], None]) -> None:
        spins, checked = 0, time.monotonic()
        while late := [member for member, counters in enumerate(self._counters) if counters[counter] < self._slices]:
            time.sleep(0 if spins < SPINS else SLEEP_SECONDS)
            spins += 1
            if spins >= SPINS and (now := time.monotonic()) - checked > CHECK_SECONDS:
                checked = now
                check(late)
        with self._fence:
            pass


def new_segment() -> Segment:
    """Return a segment for one member of a group, all zeros."""
    return create_segment(PAGE + 2 * SLICE_BYTES)
