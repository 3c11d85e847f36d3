"""Transfer of segments to another process of the host.

A process that is being started inherits the descriptor. At any other time, in a queue or pipe, the pickle holds its address:
descriptor ``n`` of process ``p``, which the receiver opens as ``/proc/p/fd/n``. That needs no server and no thread, but the
sender must still have the descriptor open. So it keeps a copy until the receiver acknowledges the segment, through a pipe
that it opens the same way. The sender reads that pipe whenever it shares, sends, receives, or drops a sent segment.
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

from ...base.errors import TelegradError
from .registry import adopt_segment, known_segment
from .segments import Segment

_ACKNOWLEDGEMENT = struct.Struct("<q")  # smaller than PIPE_BUF: written in one piece or not at all


class SharedMemoryError(TelegradError, RuntimeError):
    """Received shared memory cannot be opened; the message says why."""


class Address(NamedTuple):
    """The address of a descriptor: a process, its number there, and the identity that the file must have."""

    process: int
    fd: int
    identity: tuple[int, int]

    def open(self, flags: int) -> int:
        """Open the descriptor in this process.

        Raises:
            OSError: that process ended, has closed it, or does not permit access.
        """
        path = f"/proc/{self.process}/fd/{self.fd}"
        # The number may belong to another file by now, and opening some files has effects.
        if _identity(os.stat(path)) == self.identity:
            fd = os.open(path, flags | os.O_CLOEXEC)
            if _identity(os.fstat(fd)) == self.identity:
                return fd
            os.close(fd)
        raise FileNotFoundError(path)


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


class Transit:
    """The sent segments that are not acknowledged yet: copies of their descriptors."""

    def __init__(self) -> None:
        self.held: dict[int, int] = {}
        self._numbers = count()
        self._pipe: tuple[int, int] | None = None
        self._watched: dict[tuple[int, int], weakref.ref[Segment]] = {}
        # Reentrant, because an allocation inside may run a finalizer that sends a segment.
        self._lock = threading.RLock()

    def send(self, segment: Segment) -> tuple[Address, Address, int]:
        """Hold a segment until it is received; return its address, that of the pipe for the acknowledgement, and its number."""
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
        """Close the descriptors of acknowledged segments."""
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
        # A finalizer: it must not wait for the lock.
        if not sys.is_finalizing() and self._lock.acquire(blocking=False):
            try:
                self._watched.pop(identity, None)
                self.collect()
            finally:
                self._lock.release()

    def _close(self) -> None:
        # The next sent segment opens another pipe.
        pipe, self._pipe = self._pipe, None
        for end in pipe or ():
            os.close(end)

    def forget(self) -> None:
        """Close everything in a forked child: the parent waits for the acknowledgements."""
        self._lock = threading.RLock()
        while self.held:
            os.close(self.held.popitem()[1])
        self._close()


transit = Transit()
os.register_at_fork(after_in_child=transit.forget)


def reduce_segment(segment: Segment) -> Any:
    """Return how multiprocessing pickles a segment."""
    from multiprocessing.context import get_spawning_popen
    from multiprocessing.reduction import DupFd

    if get_spawning_popen() is not None:
        return inherit_segment, (DupFd(segment.fd),)
    return fetch_segment, transit.send(segment)


def inherit_segment(handle: Any) -> Segment:
    """Return the segment of a descriptor that a new process inherited from its parent."""
    return adopt_segment(handle.detach())


def fetch_segment(address: Address, acknowledgements: Address, number: int) -> Segment:
    """Return the segment that another process holds for this one, and acknowledge it.

    Args:
        address: of the segment's descriptor.
        acknowledgements: of the pipe that the sender reads.
        number: the segment's, for the acknowledgement.

    Raises:
        SharedMemoryError: that process ended, or does not permit access.
    """
    transit.collect()
    segment = known_segment(address.identity)
    if segment is None:
        segment = _fetch(address)
    _acknowledge(acknowledgements, number)
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


def _acknowledge(pipe: Address, number: int) -> None:
    try:
        end = pipe.open(os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        return  # the sender ended meanwhile
    try:
        os.write(end, _ACKNOWLEDGEMENT.pack(number))
    except OSError:
        pass  # its pipe is full: it keeps this segment until it ends
    finally:
        os.close(end)
