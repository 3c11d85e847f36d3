"""The other workers: who they are, the connections to them, and what the failures of connections say about them.

When a connection breaks, its dialer dials again. If the same incarnation of the worker answers, it was only cut off. If not,
the failure is evidence against it: that nobody listens at its address or somebody else does, or that nothing answered for as
long as a connection may take to come back. A failure of this worker's own (no descriptors, no memory) is no evidence.
What follows from the evidence is decided together with the others (``verdict.py``).
"""

from __future__ import annotations

import errno
import threading
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from ..core.errors import AuthenticationError, LinkCutError, UnknownWorkerError, WorkerLostError
from ..proto.rpc_pb2 import WorkerRecord
from .control_queue import ControlQueue
from .lanes.base import Connection
from .messages import Topic
from .reports import Evidence, Finding

REDIAL_SECONDS = 0.1
REDIAL_CAP_SECONDS = 2.0
# Nobody is there (refused), or somebody else is (a stranger, or another incarnation that refuses us).
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


class WorkerInfo(NamedTuple):
    """A worker of the job (``torch.distributed.rpc.WorkerInfo``): its name and its rank."""

    name: str
    id: int


class Trouble(NamedTuple):
    """Dialing a worker fails: what that says about it, and since when."""

    evidence: Evidence
    since: float


class Peer:
    """One incarnation of one worker, as this worker sees it."""

    def __init__(self, record: WorkerRecord, same_main: bool) -> None:
        self.record = record
        self.info = WorkerInfo(record.name, record.rank)
        self.same_main = same_main
        self.lock = threading.Lock()  # guards what follows; never held while a frame is sent
        self.control = ControlQueue(uncounted=(Topic.QUIESCENCE, Topic.MEMBERSHIP))
        self.dialed: Connection | None = None
        self.open = False  # the dialed connection has proven itself
        self.accepted: list[Connection] = []
        self.broken_since: float | None = None
        self.redial_at: float | None = None
        self.redials = 0
        self.trouble: Trouble | None = None
        self.cut = ""  # why calls to it fail although it stays in the job
        self.gone: str = ""  # why it is lost, or that it left

    def check_present(self) -> None:
        """Raise if it is gone.

        Raises:
            WorkerLostError: it is.
        """
        if self.gone:
            raise self.lost_error()

    def lost_error(self) -> WorkerLostError:
        """The error that everything that waits for it gets."""
        return WorkerLostError(
            f"worker {self.info.name!r} (rank {self.info.id}) is gone: {self.gone}; calls to it fail from now on, and so "
            f"do references that it owned",
            self.info.name,
        )

    def cut_error(self) -> LinkCutError:
        """The error that calls get while the link is cut."""
        return LinkCutError(
            f"the link to worker {self.info.name!r} (rank {self.info.id}) is cut: {self.cut}; calls to it work again when the "
            f"link is back",
            self.info.name,
        )

    @property
    def linked(self) -> bool:
        """Whether a connection stands, dialed by either side."""
        return self.open or bool(self.accepted)

    def evidence(self) -> Evidence | None:
        """Return the evidence against the worker; none as long as a connection stands."""
        trouble = self.trouble
        return None if trouble is None or self.linked else trouble.evidence

    def forget(self, connection: Connection) -> None:
        """A connection turned out to be closed before we were told: the next call dials anew."""
        with self.lock:
            if self.dialed is connection:
                self.dialed, self.open = None, False

    def connected(self) -> None:
        """The dialed connection is open."""
        with self.lock:
            self.open = True
            self.broken_since = self.redial_at = self.trouble = None
            self.cut = ""
            self.redials = 0
            self.control.reconnected()

    def disconnected(self, connection: Connection, error: Exception, now: float, timeout: float) -> None:
        """A connection ended. ``evidence`` and ``redial_at`` say what follows."""
        with self.lock:
            if connection in self.accepted:
                self.accepted.remove(connection)
                dialing = False
            else:
                dialing = connection is self.dialed
            if dialing:
                self.dialed, self.open = None, False
                self._note(error, now, timeout)
            if self.dialed is None and (dialing or self.redial_at is None):
                self.redial_at = now + self._pause()

    def _note(self, error: Exception, now: float, timeout: float) -> None:
        # lock held
        if is_own(error):
            self.broken_since = None
        elif isinstance(error, PROOF):
            self.trouble = Trouble(Evidence(Finding.DEAD, _proof(error)), self.trouble.since if self.trouble else now)
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
        """Mark it gone; False if it already was."""
        with self.lock:
            if self.gone:
                return False
            self.gone = reason
            self.cut = ""
            self.redial_at = self.trouble = None
            self.control.peer_lost()
            return True

    def connections(self) -> list[Connection]:
        """Every connection to and from it."""
        with self.lock:
            return ([self.dialed] if self.dialed else []) + self.accepted


def is_own(error: Exception) -> bool:
    """Return whether an error is this process's own trouble, and so says nothing about a peer."""
    if isinstance(error, OSError):
        return error.errno in OWN_ERRORS
    return isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and "start new thread" in str(error))


def _proof(error: Exception) -> str:
    if isinstance(error, ConnectionRefusedError):
        return "its process died or closed (connection refused)"
    return f"another process answers at its address ({error})"


class Peers:
    """The workers of the job, by rank and by name."""

    def __init__(self, records: Iterable[WorkerRecord], me: WorkerRecord) -> None:
        self.me = me
        self._by_rank: dict[int, Peer] = {}
        self._by_name: dict[str, Peer] = {}
        for record in records:
            same_main = bool(me.main_script) and record.main_script == me.main_script
            peer = Peer(record, same_main or record.identity == me.identity)
            self._by_rank[record.rank] = self._by_name[record.name] = peer

    def __iter__(self) -> Iterator[Peer]:
        return iter(list(self._by_rank.values()))

    def __len__(self) -> int:
        return len(self._by_rank)

    def others(self) -> list[Peer]:
        """Every live worker but this one."""
        return [peer for peer in self if not peer.gone and peer.info.id != self.me.rank]

    def at(self, rank: int) -> Peer:
        """The worker of a rank that came in a message or a handle."""
        return self._by_rank[rank]

    def find(self, to: Any) -> Peer:
        """The worker that a user named: by name, rank or ``WorkerInfo``.

        Raises:
            UnknownWorkerError: there is none.
            TypeError: it is none of these.
        """
        if isinstance(to, WorkerInfo):
            to = to.name
        if isinstance(to, str):
            peer = self._by_name.get(to)
        elif isinstance(to, int) and not isinstance(to, bool):
            peer = self._by_rank.get(to)
        else:
            raise TypeError(f"you named a worker by {to!r}; use its name, its rank or its WorkerInfo")
        if peer is None:
            known = ", ".join(f"{p.info.name!r} ({p.info.id})" for p in self)
            raise UnknownWorkerError(f"there is no worker {to!r} in this job; its workers are {known}")
        return peer
