"""Peer: one worker as this worker sees it, with the connections to it and the evidence that it is lost.

When a connection breaks, its dialer dials again. If the same incarnation of the worker answers, only the connection was lost.
Otherwise the failure is evidence against the worker: nobody or another process listens at its address, or nothing has
answered for ``reconnect_timeout``. A failure of this worker's own (no descriptors, no memory) is no evidence.
All workers together decide what follows from the evidence (``verdict.py``).
"""

from __future__ import annotations

import errno
import threading
from typing import Any, NamedTuple

from ..core.errors import AuthenticationError, LinkCutError, WorkerLostError
from ..proto.rpc_pb2 import WorkerRecord
from .control_queue import ControlQueue
from .lanes.base import Connection
from .messages import Topic
from .reports import Evidence, Finding
from .worker_info import info_of

REDIAL_SECONDS = 0.1
REDIAL_CAP_SECONDS = 2.0
# Errors that prove the worker dead: nobody listens at its address, or another process does, or another incarnation.
PROOF = (ConnectionRefusedError, ConnectionAbortedError, AuthenticationError)
OWN_ERRORS = frozenset(
    (
        errno.EMFILE,
        errno.ENFILE,
        errno.ENOMEM,
        errno.ENOBUFS,
        errno.EADDRNOTAVAIL,
        errno.EAGAIN,
        errno.EPERM,
        errno.EACCES,
    )
)


class Trouble(NamedTuple):
    """Evidence from failed dialing of a worker, and the time since which there is some."""

    evidence: Evidence
    since: float


class Peer:
    """One incarnation of one worker, as this worker sees it.

    Args:
        record: the worker.
        same_main: it runs the same main script, whose functions travel by name.
        versions: both workers and their Python versions, if these differ: code does not travel by value then.
    """

    def __init__(self, record: WorkerRecord, same_main: bool, versions: str = "") -> None:
        self.record = record
        self.info = info_of(record)
        self.number = record.number
        self.same_main = same_main
        self.versions = versions
        # Guards the attributes below; never held while a frame is sent. Re-entrant: a signal handler may close the agent while
        # its thread holds the lock.
        self.lock = threading.RLock()
        self.control = ControlQueue(uncounted=(Topic.QUIESCENCE, Topic.MEMBERSHIP))
        self.dialed: Connection | None = None
        self.open = False  # the dialed connection has proven itself
        # The last dialed connection, if it ended before that: its frames can go by the next one.
        self.unopened: Connection | None = None
        self.accepted: list[Connection] = []
        self.latest: Connection | None = None  # that of the latest request in either direction: threads may read there
        self.broken_since: float | None = None  # moved on by the time in which the worker's system answered a dialer
        # When its system first answered on the connection that is being dialed.
        self.answered_since: float | None = None
        self.redial_at: float | None = None
        self.redials = 0
        self.trouble: Trouble | None = None
        self.cut = ""  # why calls to it fail although it stays in the job
        self.gone: str = ""  # why it is lost, or that it left

    def check_present(self) -> None:
        """Raise if the worker is gone.

        Raises:
            WorkerLostError: it is gone.
        """
        if self.gone:
            raise self.lost_error()

    def lost_error(self) -> WorkerLostError:
        """Return the error for everything that waits for the worker."""
        return WorkerLostError(
            f"worker {self.info.name!r} (rank {self.info.id}) is gone: {self.gone}; calls to it fail from now on, and so "
            f"do references that it owned",
            self.info.name,
        )

    def cut_error(self) -> LinkCutError:
        """Return the error for calls while the link is cut."""
        return LinkCutError(
            f"the link to worker {self.info.name!r} (rank {self.info.id}) is cut: {self.cut}; calls to it work again when the "
            f"link is back",
            self.info.name,
        )

    @property
    def linked(self) -> bool:
        """Return whether there is an open connection, dialed by either side."""
        return self.open or bool(self.accepted)

    def evidence(self) -> Evidence | None:
        """Return the evidence against the worker; ``None`` while a connection is open."""
        trouble = self.trouble
        return None if trouble is None or self.linked else trouble.evidence

    def where_it_reads(self) -> Connection | None:
        """Return the connection of the latest request if it is open: if a thread of the peer reads, it reads there."""
        latest = self.latest  # it may have ended: a thread may set it after the end of the connection
        return latest if latest in self.accepted or (self.open and latest is self.dialed) else None

    def forget(self, connection: Connection) -> None:
        """Drop a connection that was found closed before the lane reported it: the next call dials again."""
        with self.lock:
            if self.dialed is connection:
                self.unopened = None if connection.opened else connection
                self.dialed, self.open = None, False

    def answered(self, now: float) -> None:
        """Note that its system answers a dialer: the worker is not silent, even if the handshake takes long."""
        with self.lock:
            self.answered_since = now

    def admitted(self, connection: Connection) -> bool:
        """Note that the peer has dialed. So its last connection has ended, even if this worker has not noticed yet.

        Returns:
            False if the worker is gone, and the connection was not noted.
        """
        with self.lock:  # whoever marks it as gone closes the connections that were noted
            if not self.gone:
                self.accepted.append(connection)
                self.latest = None
            return not self.gone

    def connected(self) -> None:
        """Note that the dialed connection is open."""
        with self.lock:
            self.open = True
            self.latest = None
            self.broken_since = self.answered_since = self.redial_at = self.trouble = None
            self.cut = ""
            self.redials = 0
            self.control.reconnected()

    def disconnected(self, connection: Connection, error: Exception, now: float, timeout: float) -> None:
        """Note that a connection ended; set ``evidence`` and ``redial_at``.

        Args:
            connection: the connection that ended.
            error: why.
            now: monotonic seconds.
            timeout: seconds of silence after which the peer counts as unreachable.
        """
        with self.lock:
            if connection in self.accepted:
                self.accepted.remove(connection)
                dialing = False
            else:
                dialing = connection is self.dialed
            if dialing:
                self.unopened = None if connection.opened else connection
                self.dialed, self.open = None, False
                self._leave_answered_out(now)
                self._note(error, now, timeout)
            if self.dialed is None and (dialing or self.redial_at is None):
                self.redial_at = now + self._pause()

    def _leave_answered_out(self, now: float) -> None:
        # lock held
        if self.answered_since is not None and self.broken_since is not None:
            self.broken_since += now - self.answered_since
        self.answered_since = None

    def _note(self, error: Exception, now: float, timeout: float) -> None:
        # lock held
        if _is_own(error):
            self.broken_since = None
        elif isinstance(error, PROOF):
            # The time counts from the first proof, as in the verdicts, not from the silence before it.
            proven = self.trouble is not None and self.trouble.evidence.finding is Finding.DEAD
            since = self.trouble.since if self.trouble is not None and proven else now
            self.trouble = Trouble(Evidence(Finding.DEAD, _proof(error)), since)
        elif self.broken_since is None:
            self.broken_since = now
        elif now - self.broken_since >= timeout and self.trouble is None:
            self.trouble = Trouble(Evidence(Finding.SILENT, f"no connection within {timeout:g} s ({error})"), now)

    def _pause(self) -> float:
        # The exponent is bounded: a link may be cut for days.
        pause = 0.0 if self.redials == 0 else min(REDIAL_SECONDS * 2.0 ** min(self.redials, 10), REDIAL_CAP_SECONDS)
        self.redials += 1
        return pause

    def leave(self, reason: str) -> bool:
        """Mark the worker as gone; return False if it already was."""
        with self.lock:
            if self.gone:
                return False
            self.gone = reason
            self.cut = ""
            self.redial_at = self.trouble = self.latest = None
            self.control.peer_lost()
            return True

    def describe(self) -> dict[str, Any]:
        """Return rank, state, lane, why it is no faster lane, and number of unacknowledged messages, for ``debug_info``."""
        cut = f"cut: {self.cut}" if self.cut else ""
        state = self.gone or cut or ("connected" if self.open else "connecting" if self.dialed else "not dialed")
        lane, note = (self.dialed.scheme, self.dialed.lane_note) if self.dialed else (None, "")
        return {
            "rank": self.info.id,
            "state": state,
            "lane": lane,
            "lane_note": note,
            "unacknowledged": self.control.open,
        }

    def connections(self) -> list[Connection]:
        """Return every connection to and from the worker."""
        with self.lock:
            return ([self.dialed] if self.dialed else []) + self.accepted


def _is_own(error: Exception) -> bool:
    """Return whether an error has its cause in this process, and so says nothing about a peer."""
    if isinstance(error, OSError):
        return error.errno in OWN_ERRORS
    return isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and "start new thread" in str(error))


def _proof(error: Exception) -> str:
    if isinstance(error, ConnectionRefusedError):
        return "its process died, or ended without rpc.shutdown() (connection refused)"
    return f"what answers at its address does not prove to be this worker ({error})"
