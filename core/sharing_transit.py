"""Segments under way to another process of the host.

A process that is being started inherits the descriptor. At any other time, in a queue or pipe, the pickle says where it
is: descriptor ``n`` of process ``p``, which the receiver opens as ``/proc/p/fd/n``. That needs no server and no thread, but
the sender must still hold it: so it keeps a copy of the descriptor until the receiver says, through a pipe that it opens
the same way, that it has it. The sender looks into that pipe whenever it shares, sends, receives, or drops what it sent.
"""

from __future__ import annotations

import os
import struct
import sys
import threading
import weakref
from functools import partial
from itertools import count
from typing import Any, NamedTuple

from .errors import TelegradError
from .segments import Segment
from .sharing import adopt_segment, known_segment

_ACKNOWLEDGEMENT = struct.Struct("<q")  # far below PIPE_BUF: written in one piece or not at all


class SharedMemoryError(TelegradError, RuntimeError):
    """Shared memory that was sent here cannot be opened; the message says why."""


class Address(NamedTuple):
    """Where a descriptor is found: its number in a process, and what must be found there."""

    process: int
    fd: int
    identity: tuple[int, int]

    def open(self, flags: int) -> int:
        """Open it here.

        Raises:
            OSError: the process is gone, has closed it, or is not ours to look into.
        """
        path = f"/proc/{self.process}/fd/{self.fd}"
        # The number may be another file's by now, and some files do something when they are opened.
        if _identity(os.stat(path)) == self.identity:
            fd = os.open(path, flags | os.O_CLOEXEC)
            if _identity(os.fstat(fd)) == self.identity:
                return fd
            os.close(fd)
        raise FileNotFoundError(path)


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


class Transit:
    """What this process sent and nobody has opened yet: copies of descriptors."""

    def __init__(self) -> None:
        self.held: dict[int, int] = {}
        self._numbers = count()
        self._pipe: tuple[int, int] | None = None
        self._watched: dict[tuple[int, int], weakref.ref[Segment]] = {}
        # Reentrant, because an allocation inside may run a finalizer, and that may send something of its own.
        self._lock = threading.RLock()

    def send(self, segment: Segment) -> tuple[Address, Address, int]:
        """Hold a segment until its receiver has it: where it is, where to say so, and under which number."""
        with self._lock:
            self.collect()
            if self._pipe is None:
                self._pipe = os.pipe()
                os.set_blocking(self._pipe[0], False)
            number, end, process = next(self._numbers), self._pipe[1], os.getpid()
            self.held[number] = copy = os.dup(segment.fd)
            if segment.identity not in self._watched:
                self._watched[segment.identity] = weakref.ref(segment, partial(self._dropped, segment.identity))
            return Address(process, copy, segment.identity), Address(process, end, _identity(os.fstat(end))), number

    def collect(self) -> None:
        """Let go of what was received."""
        with self._lock:
            while self._pipe is not None:
                try:
                    arrived = os.read(self._pipe[0], 1 << 16)
                except BlockingIOError:
                    return
                for (number,) in _ACKNOWLEDGEMENT.iter_unpack(arrived):
                    if number in self.held:
                        os.close(self.held.pop(number))
                if not self.held:
                    self._close()

    def _dropped(self, identity: tuple[int, int], _: object) -> None:
        # A finalizer: it waits for nobody.
        if not sys.is_finalizing() and self._lock.acquire(blocking=False):
            try:
                self._watched.pop(identity, None)
                self.collect()
            finally:
                self._lock.release()

    def _close(self) -> None:
        # The next segment that is sent opens another.
        pipe, self._pipe = self._pipe, None
        for end in pipe or ():
            os.close(end)

    def forget(self) -> None:
        """In a forked child: what the parent sent is the parent's."""
        self._lock = threading.RLock()
        while self.held:
            os.close(self.held.popitem()[1])
        self._close()


transit = Transit()
os.register_at_fork(after_in_child=transit.forget)


def reduce_segment(segment: Segment) -> Any:
    """How multiprocessing pickles a segment."""
    from multiprocessing.context import get_spawning_popen
    from multiprocessing.reduction import DupFd

    if get_spawning_popen() is not None:
        return inherit_segment, (DupFd(segment.fd),)
    return fetch_segment, transit.send(segment)


def inherit_segment(handle: Any) -> Segment:
    """In a process that was just started: the segment of a descriptor that it got from its parent."""
    return adopt_segment(handle.detach())


def fetch_segment(address: Address, thanks: Address, number: int) -> Segment:
    """The segment that another process holds.

    Raises:
        SharedMemoryError: that process ended, or may not be looked into.
    """
    transit.collect()
    segment = known_segment(address.identity)
    if segment is None:
        segment = _fetch(address)
    _acknowledge(thanks, number)
    return segment


def _fetch(address: Address) -> Segment:
    try:
        return adopt_segment(address.open(os.O_RDWR))
    except (FileNotFoundError, ProcessLookupError) as error:
        raise SharedMemoryError(
            f"a shared tensor of process {address.process} cannot be opened: that process ended before it was received; "
            "let the sender wait until its receivers have what it sent, or send a clone() that is not shared"
        ) from error
    except PermissionError as error:
        raise SharedMemoryError(
            f"a shared tensor of process {address.process} cannot be opened: this process may not look into that one; "
            "run both as the same user, or send a clone() that is not shared"
        ) from error


def _acknowledge(thanks: Address, number: int) -> None:
    try:
        end = thanks.open(os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        return  # the sender ended meanwhile
    try:
        os.write(end, _ACKNOWLEDGEMENT.pack(number))
    except OSError:
        pass  # it has thousands unread, and will keep this one until it ends
    finally:
        os.close(end)
