"""Last events of a worker, in memory that its launcher made: the launcher reads them also of a worker that was killed.

The memory has three parts. *States* are overwritten in place, each under a name: the last value that the program logged, the
position of a loop. *Events* are a ring: joined, lost another worker, left. Each of these is written to a slot of its own, whose
head is written last, so a slot that was being written when the process died is empty or as before. Last come the calls that the
worker served (``last_calls.py``).
"""

from __future__ import annotations

import itertools
import mmap
import os
import struct
import time
from contextlib import suppress
from typing import NamedTuple

from .last_calls import LAST_CALLS_BYTES, PastCall, read_last_calls
from .last_calls import LastCalls as LastCalls  # for those that note calls

EVENTS_VARIABLE = "TELEGRAD_EVENTS"  # path of the launcher's memory:offset of this worker's part in bytes
SLOT_BYTES = 256
STATE_SLOTS = 16
SLOTS = 64
TEXTS_BYTES = SLOTS * SLOT_BYTES
LAST_EVENTS_BYTES = TEXTS_BYTES + LAST_CALLS_BYTES  # a multiple of a page
SLOT_HEAD = struct.Struct("<dH")  # monotonic seconds, which all processes of a machine share; length of the text
MOST_TEXT_BYTES = SLOT_BYTES - SLOT_HEAD.size
EMPTY_HEAD = SLOT_HEAD.pack(0.0, 0)


class PastEvent(NamedTuple):
    """Event or state that a worker noted, and when, in monotonic seconds."""

    at: float
    text: str


class LastEvents:
    """Writer of one worker's states and events. Any thread; a text that another one overtakes is lost.

    Args:
        memory: at least ``LAST_EVENTS_BYTES``, empty.

    Attributes:
        calls: takes the calls that it serves.
    """

    def __init__(self, memory: mmap.mmap | bytearray) -> None:
        self._memory = memory
        self._numbers = itertools.count()
        self._slots: dict[str, int] = {}
        self.calls = LastCalls(memory, TEXTS_BYTES)

    def add(self, text: str) -> None:
        """Add an event; when there is no room, the oldest is overwritten."""
        self._write(STATE_SLOTS + next(self._numbers) % (SLOTS - STATE_SLOTS), text)

    def set(self, name: str, text: str) -> None:
        """Set the state of that name; only the first ``STATE_SLOTS`` names have one."""
        slot = self._slots.get(name)
        if slot is None:
            if len(self._slots) >= STATE_SLOTS:
                return
            slot = self._slots[name] = len(self._slots)
        self._write(slot, text)

    def _write(self, slot: int, text: str) -> None:
        data = text.encode("utf-8", "backslashreplace")[:MOST_TEXT_BYTES]
        start = slot * SLOT_BYTES
        body = start + SLOT_HEAD.size
        self._memory[start:body] = EMPTY_HEAD
        self._memory[body : body + len(data)] = data
        SLOT_HEAD.pack_into(self._memory, start, time.monotonic(), len(data))


def read_last_events(memory: bytes) -> list[PastEvent]:
    """Return what a worker noted, the oldest first.

    Args:
        memory: of its ``LastEvents``; whatever it holds, this returns.
    """
    found = []
    for start in range(0, min(len(memory), TEXTS_BYTES), SLOT_BYTES):
        at, length = SLOT_HEAD.unpack_from(memory, start)
        body = start + SLOT_HEAD.size
        if at > 0 and 0 < length <= MOST_TEXT_BYTES:
            text = memory[body : body + length].decode("utf-8", "replace")
            found.append(
                PastEvent(at, "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in text))
            )
    return sorted(found)


def read_calls(memory: bytes) -> list[PastCall]:
    """Return the calls that a worker served last, the first that began first.

    Args:
        memory: as for ``read_last_events``.
    """
    return read_last_calls(memory[TEXTS_BYTES:LAST_EVENTS_BYTES].ljust(LAST_CALLS_BYTES, b"\0"))


def launched_last_events() -> LastEvents | None:
    """Return the writer for which the launcher of this process has made memory; None if there is none, or it is gone."""
    path, _, offset = os.environ.get(EVENTS_VARIABLE, "").rpartition(":")
    if not path or not offset.isdecimal():
        return None
    with suppress(OSError, ValueError):
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            return LastEvents(mmap.mmap(descriptor, LAST_EVENTS_BYTES, offset=int(offset)))
        finally:
            os.close(descriptor)
    return None
