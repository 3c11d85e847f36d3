"""Peers: the workers of the job, the connections to each, and the evidence that failed connections give against it.

When a connection breaks, its dialer dials again. If the same incarnation of the worker answers, it was only cut off. If not,
the failure is evidence against it: that nobody listens at its address or somebody else does, or that nothing answered for as
long as a connection may take to come back. A failure of this worker's own (no descriptors, no memory) is no evidence.
What follows from the evidence is decided together with the others (``verdict.py``).
"""

from __future__ import annotations

import errno
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from ..core.errors import (
    ArgumentKindError,
    ArgumentTypeError,
    ArgumentValueError,
    AuthenticationError,
    LinkCutError,
    UnknownWorkerError,
    WorkerLostError,
)
from ..proto.rpc_pb2 import WorkerRecord
from .control_queue import ControlQueue
from .lanes.base import Connection
from .messages import Topic
from .reports import Evidence, Finding
from .worker_records import WorkerRecords

NAME = re.compile(r"[A-Za-z0-9_:.\-]{1,128}")
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


class _NameAndRank(NamedTuple):
    name: str
    id: int


class WorkerInfo(_NameAndRank):
    """A worker of the job (``torch.distributed.rpc.WorkerInfo``): its name and its rank.

    Args:
        name: its name, 1 to 128 letters, digits, ``_``, ``-``, ``:`` and ``.``.
        id: its rank.

    Raises:
        ArgumentTypeError: the name is no text (an ``ArgumentKindError``), or the rank no whole number.
        ArgumentValueError: the name has other characters.
    """

    __slots__ = ()

    def __new__(cls, name: str, id: int) -> WorkerInfo:  # noqa: A002  # PyTorch's name
        check_name(name)
        if not isinstance(id, int):
            raise ArgumentTypeError(f"a worker's id is its rank, a whole number; you gave {id!r}")
        return super().__new__(cls, name, id)


def check_name(name: object) -> None:
    """Raise an error unless a worker can have that name."""
    wrong = f"a worker's name is 1 to 128 letters, digits, '_', '-', ':' or '.'; you gave {name!r}"
    if not isinstance(name, str):
        raise ArgumentKindError(wrong)
    if not NAME.fullmatch(name):
        raise ArgumentValueError(wrong)


class Trouble(NamedTuple):
    """Evidence from dialing a worker in vain, and since when."""

    evidence: Evidence
    since: float


class Peer:
    """One incarnation of one worker, as this worker sees it."""

    def __init__(self, record: WorkerRecord, same_main: bool) -> None:
        self.record = record
        self.info = _info_of(record)
        self.number = record.number
        self.same_main = same_main
        # Guards what follows; never held while a frame is sent. Re-entrant: a signal handler may close the agent while its
        # thread holds it.
        self.lock = threading.RLock()
        self.control = ControlQueue(uncounted=(Topic.QUIESCENCE, Topic.MEMBERSHIP))
        self.dialed: Connection | None = None
        self.open = False  # the dialed connection has proven itself
        self.unopened: Connection | None = None  # the last one, if it ended before: what waits there can go by the next
        self.accepted: list[Connection] = []
        self.latest: Connection | None = None  # that of the latest request, either way: threads read there, if anywhere
        self.broken_since: float | None = None  # less the time in which its system has answered a dialer
        self.answered_since: float | None = None  # by its system, on the connection that is being dialed
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
        """Return the error of everything that waits for the worker."""
        return WorkerLostError(
            f"worker {self.info.name!r} (rank {self.info.id}) is gone: {self.gone}; calls to it fail from now on, and so "
            f"do references that it owned",
            self.info.name,
        )

    def cut_error(self) -> LinkCutError:
        """Return the error of calls while the link is cut."""
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
        """Return the evidence against the worker; none as long as a connection stands."""
        trouble = self.trouble
        return None if trouble is None or self.linked else trouble.evidence

    def where_it_reads(self) -> Connection | None:
        """Return the connection of the latest request if it is open. The peer's threads read there, if anywhere."""
        latest = self.latest  # a thread that had a request in hand as its connection ended may have set it after that
        return latest if latest in self.accepted or (self.open and latest is self.dialed) else None

    def forget(self, connection: Connection) -> None:
        """Drop a connection that turned out to be closed before the lane reported it: the next call dials anew."""
        with self.lock:
            if self.dialed is connection:
                self.unopened = None if connection.opened else connection
                self.dialed, self.open = None, False

    def answered(self, now: float) -> None:
        """Note that its system answers a dialer: it is not silent, however long the handshake takes."""
        with self.lock:
            self.answered_since = now

    def admitted(self, connection: Connection) -> None:
        """Note that the peer has dialed: its last connection has ended, though this worker may not know yet."""
        with self.lock:
            self.accepted.append(connection)
            self.latest = None

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
        if is_own(error):
            self.broken_since = None
        elif isinstance(error, PROOF):
            # From the first proof, as in the verdicts: what was only silent before is lost some time after it.
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
            self.redial_at = self.trouble = self.unopened = self.latest = None
            self.control.peer_lost()
            return True

    def describe(self) -> dict[str, Any]:
        """Return rank, state, lane and why no faster one, and number of unacknowledged messages, for ``debug_info``."""
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


def _info_of(record: WorkerRecord) -> WorkerInfo:
    return WorkerInfo._make((record.name, record.rank))  # its name was checked when it started


def is_own(error: Exception) -> bool:
    """Return whether an error has its cause in this process, and so says nothing about a peer."""
    if isinstance(error, OSError):
        return error.errno in OWN_ERRORS
    return isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and "start new thread" in str(error))


def _proof(error: Exception) -> str:
    if isinstance(error, ConnectionRefusedError):
        return "its process died or closed (connection refused)"
    return f"another process answers at its address ({error})"


class Peers:
    """Workers of the job, by number, rank and name: none before the rendezvous, then all.

    A job may have many, and this worker deals with few. So a ``Peer`` is made when this worker first talks to it, hears of it
    or looks it up; until then there is only its record, which is not even decoded.

    In a dynamic group a name or a rank is the last worker's that has had it; the others keep their numbers.
    """

    def __init__(self, me: WorkerRecord) -> None:
        self.me = me
        self._records = WorkerRecords.of(())  # where a worker's number is its place
        self._later: list[int] = []  # numbers of those that are not among them
        self._by_number = _ByNumber(self._make)
        self._by_rank: dict[int, Peer] = {}
        self._by_name: dict[str, Peer] = {}
        self._gone: dict[int, Peer] = {}

    def fill(self, records: Iterable[WorkerRecord]) -> None:
        """Take the workers that the rendezvous has found."""
        table = records if isinstance(records, WorkerRecords) else WorkerRecords.of(records)
        if table.ranked:
            self._records = table
        else:
            for record in table:
                self.add(record)

    def add(self, record: WorkerRecord) -> Peer:
        """Take a worker, unless it is known."""
        if record.number not in self:
            self._later.append(record.number)
            peer = self._peer(record)
            self._by_number[record.number] = self._by_rank[record.rank] = self._by_name[record.name] = peer
        return self.at(record.number)

    def _make(self, number: int) -> Peer:
        """Return the peer of a record. Another thread may make it at the same time: all get the first."""
        if not 0 <= number < len(self._records):
            raise KeyError(number)
        peer = self._by_number.setdefault(number, self._peer(self._records[number]))
        # Another may have its name or rank by now, in a dynamic group.
        self._by_rank.setdefault(peer.info.id, peer)
        self._by_name.setdefault(peer.info.name, peer)
        return peer

    def _peer(self, record: WorkerRecord) -> Peer:
        same_main = bool(self.me.main_script) and record.main_script == self.me.main_script
        return Peer(record, same_main or record.identity == self.me.identity)

    # -- all workers, those that are gone included

    def __contains__(self, number: object) -> bool:
        return number in self._by_number or (isinstance(number, int) and 0 <= number < len(self._records))

    def __len__(self) -> int:
        return len(self._records) + len(self._later)

    def __iter__(self) -> Iterator[Peer]:
        """Iterate over all, which makes those that were not made yet."""
        return map(self.at, self.numbers())

    def numbers(self) -> Sequence[int]:
        """Return the numbers of all: a ``range``, unless the job is a dynamic group."""
        first = range(len(self._records))
        return [*first, *self._later] if self._later else first

    def info(self, number: int) -> WorkerInfo:
        """Return name and rank of the worker of a number."""
        peer = self._by_number.get(number)
        return _info_of(self._records[number]) if peer is None else peer.info

    def name(self, number: int) -> str:
        """Return the name of the worker of a number."""
        return self.info(number).name

    # -- some of them

    def met(self) -> list[Peer]:
        """Return the workers with which this one has had to do."""
        return list(self._by_number.values())

    def leave(self, peer: Peer, reason: str) -> bool:
        """Mark a worker as gone; return False if it already was."""
        left = peer.leave(reason)
        if left:
            self._gone[peer.number] = peer
        return left

    def gone(self) -> list[Peer]:
        """Return the workers that are lost or have left."""
        return list(self._gone.values())

    def live(self) -> list[WorkerInfo]:
        """Return name and rank of every worker that is not gone."""
        return [self.info(number) for number in self.numbers() if number not in self._gone]

    # -- one of them

    def mine(self) -> Peer:
        """Return this worker."""
        return self.find(self.me.rank)

    def at(self, number: int) -> Peer:
        """Return the worker of a number that came in a message or a reference."""
        return self._by_number[number]

    def member(self, record: WorkerRecord) -> Peer | None:
        """Return the worker that a record describes; ``None`` if that incarnation is not in the job."""
        peer = self.at(record.number) if record.number in self else None
        return peer if peer is not None and peer.record.identity == record.identity else None

    def find(self, to: Any) -> Peer:
        """Return the worker that a user named, by name, rank or ``WorkerInfo``; or the one that was found before.

        Raises:
            UnknownWorkerError: there is none.
            ArgumentKindError: ``to`` is none of these.
        """
        if isinstance(to, str):
            peer = self._by_name.get(to) or self._in_records(self._records.place_of(to))
        elif isinstance(to, Peer):
            return to
        elif isinstance(to, WorkerInfo):
            return self.find(to.name)
        elif isinstance(to, int) and not isinstance(to, bool):
            peer = self._by_rank.get(to) or self._in_records(to)
        else:
            raise ArgumentKindError(f"you named a worker by {to!r}; use its name, its rank or its WorkerInfo")
        if peer is None:
            known = ", ".join(f"{info.name!r} ({info.id})" for info in self.live())
            raise UnknownWorkerError(f"there is no worker {to!r} in this job; its workers are {known}")
        return peer

    def _in_records(self, place: int) -> Peer | None:
        return self.at(place) if 0 <= place < len(self._records) else None


class _ByNumber(dict[int, Peer]):
    """Peers by number; one that is missing is made."""

    def __init__(self, make: Callable[[int], Peer]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, number: int) -> Peer:
        return self._make(number)
