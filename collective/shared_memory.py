"""``SharedReduction``: ``all_reduce``s of ranks on one host, through a segment of memory of each that all map.

No message is sent. For each call a rank writes an *entry* into its own segment: the number of the collective, how it was
called, and the array if that is small. It takes part when all have an entry of that number, and all were called alike. A small
array is then combined, by each rank for itself, from all entries.

A large one goes through in slices of 4 MiB. For each slice a rank copies its elements into its own segment, combines one chunk
of all segments, and copies the other chunks of the result. So an element is copied once into shared memory and once out of it.

Only its owner writes a segment. It begins with counters: which collective its owner has *begun*, how many slices it has
*copied*, and how many chunks it has *combined*. Entries use two places in turn, and slices two halves. An entry may be
overwritten when all have begun a later call than its own, and a half when all have copied the slice after it: they have read
what is there by then.
"""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections.abc import Callable, Sequence

import numpy as np

from ..core.extend import Array
from ..core.futures import interruptible
from ..core.shared_memory import Address, Segment, create_segment, open_segment
from .reduction import ReduceOp, combine_into

SLICE_BYTES = 4 * 1024 * 1024
SMALL_ARRAY_BYTES = 64 * 1024  # an array up to this size is part of the entry
TEXT_BYTES = 1024
PAGE = 4096
BEGUN, COPIED, COMBINED, NUMBERS, SLICES = 0, 1, 2, 3, 5  # places of the counters; two each of the last ones
SPINS = 100  # questions that yield the processor, before those that sleep
SLEEP_SECONDS = 50e-6, 1e-3  # from the least to the most
CHECK_SECONDS = 1e-3  # from one look at the others' lives to the next

Check = Callable[[list[int], float], None]
_yield_processor = ctypes.CDLL(None).sched_yield  # without the interpreter's lock, unlike os.sched_yield before 3.12


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
        self._counters = [memoryview(segment)[:PAGE].cast("q") for segment in segments]
        self._mine = self._counters[index]
        self._slices = 0  # begun so far
        self._turn = 0  # place of the next entry
        self._fence = threading.Lock()

    def all_reduce(
        self, number: int, signature: str, array: Array, op: ReduceOp, check: Check
    ) -> tuple[int, str] | None:
        """Replace everybody's array by the combination of all. One call at a time, in the same order on all members.

        Args:
            number: of the call; it grows from call to call.
            signature: must be the same on all members.
            array: C-contiguous, of one dimension.
            op: how to combine.
            check: called now and then with the indices of the members that are waited for, and how many seconds it has been;
                raises if that is in vain.

        Returns:
            The index and signature of a member that was called otherwise; ``None`` if none was, and the array was combined.
        """
        text = signature.encode()[: TEXT_BYTES - 1] + b"\0"
        small = array.nbytes <= SMALL_ARRAY_BYTES
        self._enter(number, text, array if small else None, check)
        places = [self._find(member, number, check) for member in range(len(self._segments))]
        with self._fence:
            pass
        for member, place in enumerate(places):
            start = _entry(place)
            if self._segments[member][start : start + len(text)] != text:
                theirs: bytes = self._segments[member][start : start + TEXT_BYTES]
                return member, theirs.partition(b"\0")[0].decode(errors="replace")
        if small:
            rows = [self._row(member, array, _entry(place) + TEXT_BYTES) for member, place in enumerate(places)]
            combine_into(array, rows, op)
            return None
        self._slices = max(counters[SLICES + place] for counters, place in zip(self._counters, places, strict=True))
        self._reduce_slices(array, op, check)
        return None

    # -- entries

    def _enter(self, number: int, text: bytes, row: Array | None, check: Check) -> None:
        """Write this member's entry, when nobody reads what it overwrites."""
        self._publish(BEGUN, number)
        place = self._turn = 1 - self._turn
        former = self._mine[NUMBERS + place]
        self._await(lambda: [i for i, each in enumerate(self._counters) if each[BEGUN] <= former], check)
        start = _entry(place)
        self._segments[self._index][start : start + len(text)] = text
        self._mine[SLICES + place] = self._slices  # members differ in it if an earlier call failed
        if row is not None:
            self._row(self._index, row, start + TEXT_BYTES)[:] = row
        self._publish(NUMBERS + place, number)

    def _find(self, member: int, number: int, check: Check) -> int:
        """Return the place of a member's entry, when it is there."""
        counters = self._counters[member]
        if counters[NUMBERS] != number != counters[NUMBERS + 1]:
            self._await(lambda: [i for i, each in enumerate(self._counters) if not _has(each, number)], check)
        return 0 if counters[NUMBERS] == number else 1

    # -- slices

    def _reduce_slices(self, array: Array, op: ReduceOp, check: Check) -> None:
        step = SLICE_BYTES // array.itemsize
        for start in range(0, array.size, step):
            part = array[start : start + step]
            self._slices += 1
            self._half(self._index, part)[:] = part
            self._publish(COPIED, self._slices)
            self._await(lambda: self._behind(COPIED), check)
            self._combine(part, op)
            self._await(lambda: self._behind(COMBINED), check)
            self._finish(part)

    def _combine(self, part: Array, op: ReduceOp) -> None:
        mine = self._chunk(part)
        rows = [self._half(member, part)[mine] for member in range(len(self._segments))]
        combine_into(part[mine], rows, op)
        np.copyto(rows[self._index], part[mine])  # the others take it from there
        self._publish(COMBINED, self._slices)

    def _finish(self, part: Array) -> None:
        for member in range(len(self._segments)):
            if member != self._index:
                place = self._chunk(part, member)
                np.copyto(part[place], self._half(member, part)[place])

    def _behind(self, counter: int) -> list[int]:
        return [member for member, counters in enumerate(self._counters) if counters[counter] < self._slices]

    def _half(self, member: int, part: Array) -> Array:
        return self._row(member, part, _entry(2) + self._slices % 2 * SLICE_BYTES)

    def _chunk(self, part: Array, member: int | None = None) -> slice:
        number, count = self._index if member is None else member, len(self._segments)
        return slice(part.size * number // count, part.size * (number + 1) // count)

    # -- memory

    def _row(self, member: int, like: Array, offset: int) -> Array:
        return self._segments[member].array(like.dtype, (like.size,), offset)

    def _publish(self, counter: int, value: int) -> None:
        with self._fence:  # a lock's release makes what was written before visible first
            pass
        self._mine[counter] = value

    def _await(self, late: Callable[[], list[int]], check: Check) -> None:
        spins, start, checked = 0, 0.0, 0.0
        while members := late():
            spins += 1
            if spins < SPINS:
                _yield_processor()
                continue
            now = time.monotonic()
            start = start or now
            if now - checked > CHECK_SECONDS:
                checked = now
                check(members, now - start)
            # A thirtieth of the time so far: short waits end soon, and long ones cost nothing.
            interruptible(time.sleep, min(max((now - start) / 30, SLEEP_SECONDS[0]), SLEEP_SECONDS[1]))
        with self._fence:
            pass


def _entry(place: int) -> int:
    """Return where the entry of a place begins."""
    return PAGE + place * (TEXT_BYTES + SMALL_ARRAY_BYTES)


def _has(counters: memoryview, number: int) -> bool:
    return number in (counters[NUMBERS], counters[NUMBERS + 1])


def new_segment() -> Segment:
    """Return a segment for one member of a group, without entries."""
    segment = create_segment(_entry(2) + 2 * SLICE_BYTES)
    counters = memoryview(segment)[:PAGE].cast("q")
    counters[BEGUN] = -1  # numbers count from 0
    counters[NUMBERS] = counters[NUMBERS + 1] = -2
    return segment
