"""Last calls that a worker served, in memory that its launcher made: it can be read also of a worker that was killed.

A ring of records of a fixed size, so that a note takes half a microsecond: when, begin or end, whose call, and the number of
the function's name. The names are written once each. A record that was being written when the process died may be damaged: a
reader takes what can be true.
"""

from __future__ import annotations

import itertools
import mmap
import struct
from time import perf_counter_ns
from typing import NamedTuple

CALL_RECORD = struct.Struct(
    "<qQIHH"
)  # nanoseconds of perf_counter; id of the call; caller's number; kind; number of the name
CALL_RECORDS = 256
pack_record = CALL_RECORD.pack_into
NAME_BYTES = 64
CALL_NAMES = 32  # functions with a name here; others are "other functions"
NAMES_START = CALL_RECORDS * CALL_RECORD.size
LAST_CALLS_BYTES = NAMES_START + CALL_NAMES * NAME_BYTES  # a multiple of a page
BEGIN, END = 1, 2
OTHER_FUNCTIONS = "other functions"


class PastCall(NamedTuple):
    """Call that a worker served.

    Attributes:
        name: of the function.
        caller: number of the caller.
        call_id: id of the call there.
        began: when it began, in nanoseconds of ``time.perf_counter_ns``.
        ended: when it ended, likewise; None if it had not.
    """

    name: str
    caller: int
    call_id: int
    began: int
    ended: int | None


class LastCalls:
    """Writer of one worker's calls. Any thread.

    Args:
        memory: of the launcher; empty.
        start: where the ring begins in it.
    """

    def __init__(self, memory: mmap.mmap | bytearray, start: int = 0) -> None:
        self._memory = memory
        self._start = start
        # Threads may share it: each takes the next place.
        self._places = itertools.cycle(range(start, start + NAMES_START, CALL_RECORD.size))
        self._names: dict[str, int] = {}
        self._numbers = itertools.count()  # of names; two threads never take the same one

    def begin(self, name: str, caller: int, call_id: int) -> None:
        """Note that a call begins.

        Args:
            name: of the function.
            caller: number of the caller.
            call_id: id of the call there.
        """
        number = self._names.get(name)
        if number is None:
            number = self._number(name)
        pack_record(self._memory, next(self._places), perf_counter_ns(), call_id, caller, BEGIN, number)

    def end(self, caller: int, call_id: int) -> None:
        """Note that a call ends.

        Args:
            caller, call_id: as for ``begin``.
        """
        pack_record(self._memory, next(self._places), perf_counter_ns(), call_id, caller, END, 0)

    def _number(self, name: str) -> int:
        """Return the number of a name, which is new: it is written. The last number is that of all others."""
        number = min(next(self._numbers), CALL_NAMES - 1)
        if len(self._names) < 10 * CALL_NAMES:  # a program may make functions without end
            self._names[name] = number
        text = name if number < CALL_NAMES - 1 else OTHER_FUNCTIONS
        data = text.encode("utf-8", "backslashreplace")[:NAME_BYTES]
        place = self._start + NAMES_START + number * NAME_BYTES
        self._memory[place : place + NAME_BYTES] = data.ljust(NAME_BYTES, b"\0")
        return number


def read_last_calls(memory: bytes) -> list[PastCall]:
    """Return the calls that a worker noted, the first that began first.

    Args:
        memory: of its ``LastCalls``; whatever it holds, this returns.
    """
    records = sorted(CALL_RECORD.iter_unpack(memory[:NAMES_START]))
    names = [_name(memory[NAMES_START + number * NAME_BYTES :][:NAME_BYTES]) for number in range(CALL_NAMES)]
    found: dict[tuple[int, int], PastCall] = {}
    for at, call_id, caller, kind, name in records:
        if kind == BEGIN and at > 0 and name < CALL_NAMES and names[name]:
            found[caller, call_id] = PastCall(names[name], caller, call_id, at, None)
        elif kind == END and (began := found.get((caller, call_id))) is not None:
            found[caller, call_id] = began._replace(ended=at)
    return sorted(found.values(), key=lambda each: each.began)


def _name(data: bytes) -> str:
    text = data.rstrip(b"\0").decode("utf-8", "replace")
    return "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in text)
