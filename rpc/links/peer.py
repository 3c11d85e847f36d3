"""Peer: one worker as this worker sees it, with the link to it and the suspicion that it is lost."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from ...base.errors import LinkCutError, WorkerLostError
from ..device_maps import NO_DEVICES, PeerDevices
from ..lanes.addresses import first_host
from ..lanes.late_frames import LateFrames
from ..wire.messages import Topic
from .control_queue import ControlQueue
from .link import Actions, Link, LinkAction, LinkState
from .suspicion import Suspicion
from .worker_info import info_of

if TYPE_CHECKING:
    from ...proto.rpc_pb2 import WorkerRecord
    from ..lanes.session import Session
    from .reports import Evidence

CUT, GONE, OPEN = LinkState.CUT, LinkState.GONE, LinkState.OPEN


class Peer:
    """One incarnation of one worker, as this worker sees it.

    Args:
        record: the worker.
        same_main: it runs the same main script, whose functions travel by name.
        versions: both workers and their Python versions, if these differ: code does not travel by value then.
        devices: devices of arrays that are sent to it.

    Attributes:
        late: frames for it that the next frame by any session takes along.
        host: host of its first address; empty if that names none.
    """

    def __init__(
        self, record: WorkerRecord, same_main: bool, versions: str = "", devices: PeerDevices = NO_DEVICES
    ) -> None:
        self.record = record
        self.info = info_of(record)
        self.number = record.number
        self.host = first_host(record.addresses)
        self.same_main = same_main
        self.versions = versions
        self.devices = devices
        # Guards the attributes below; never held while a frame is sent. Re-entrant: it is held while the calls of a session
        # that never opened move to the next, and one that fails then may post a message to the peer.
        self.lock = threading.RLock()
        self.late = LateFrames()
        self.control = ControlQueue(uncounted=(Topic.QUIESCENCE, Topic.MEMBERSHIP))
        self.link = Link()
        self.suspicion = Suspicion()

    @property
    def gone(self) -> str:
        """Return why the worker is lost, or that it left; empty while it is in the job."""
        return self.link.reason if self.link.state is GONE else ""

    @property
    def cut(self) -> str:
        """Return why calls to the worker fail although it stays in the job; empty if they do not."""
        return self.link.reason if self.link.state is CUT else ""

    def check_present(self) -> None:
        """Raise if the worker is gone.

        Raises:
            WorkerLostError: it is gone.
        """
        if self.link.state is GONE:
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
        """Return whether there is an open session, dialed by either side."""
        return self.link.state is OPEN or bool(self.link.accepted)

    def evidence(self) -> Evidence | None:
        """Return the evidence against the worker; ``None`` while a session is open."""
        trouble = self.suspicion.trouble
        return None if trouble is None or self.linked else trouble.evidence

    def where_it_reads(self) -> Session | None:
        """Return the session of the latest request if it is open: if a thread of the peer reads, it reads there."""
        link = self.link
        latest = link.latest  # it may have ended: a thread may set it after the end of the session
        return latest if latest in link.accepted or (link.state is OPEN and latest is link.dialed) else None

    # -- events of the link

    def found_closed(self, session: Session, now: float, tried: int) -> bool:
        """Note that a message could not go by a session; return whether it may try another.

        Args:
            session, now, tried: as for ``Link.found_closed``.
        """
        with self.lock:
            return self.link.found_closed(session, now, tried)

    def answered(self, now: float) -> None:
        """Note that its system answers a dialer: the worker is not silent, even if the handshake takes long."""
        with self.lock:
            self.suspicion.answered(now)

    def admitted(self, session: Session) -> bool:
        """Note that the peer has dialed. So its last session has ended, even if this worker has not noticed yet.

        Returns:
            False if the worker is gone, and the session was not noted.
        """
        with self.lock:  # the thread that marks it as gone closes the sessions that were noted
            present = self.link.state is not GONE
            if present:
                self.link.accepted.append(session)
                self.link.latest = None
            return present

    def opened(self, session: Session) -> Actions:
        """Note that the dialed session is open."""
        with self.lock:
            actions = self.link.opened(session)
            if LinkAction.ANNOUNCE in actions:
                self.suspicion.cleared()
                self.control.reconnected()
            return actions

    def ended(self, session: Session, error: Exception, now: float, timeout: float) -> Actions:
        """Note that a session ended.

        Args:
            session: the session that ended.
            error: why.
            now: monotonic seconds.
            timeout: seconds of silence after which the peer counts as unreachable.
        """
        with self.lock:
            if session is self.link.dialed and self.link.state is not GONE:
                self.suspicion.failed(error, now, timeout)
            return self.link.ended(session, now)

    def cut_off(self, reason: str, now: float) -> bool:
        """Mark the link as cut; return False if it is open, was cut before, or the worker is gone."""
        with self.lock:
            return LinkAction.FAIL in self.link.cut_off(reason, now)

    def mark_gone(self, reason: str) -> bool:
        """Mark the worker as gone; return False if it already was."""
        with self.lock:
            left = LinkAction.DROP in self.link.lost(reason)
            if left:
                self.suspicion.cleared()
                self.control.peer_lost()
            return left

    def describe(self) -> dict[str, Any]:
        """Return rank, state, lane, why it is no faster lane, and number of unacknowledged messages, for ``debug_info``."""
        dialed = self.link.dialed
        cut = f"cut: {self.cut}" if self.cut else ""
        state = (
            self.gone or cut or ("connected" if self.link.state is OPEN else "connecting" if dialed else "not dialed")
        )
        lane, note = (dialed.scheme, dialed.lane_note) if dialed else (None, "")
        return {
            "rank": self.info.id,
            "state": state,
            "lane": lane,
            "lane_note": note,
            "unacknowledged": self.control.open,
        }

    def sessions(self) -> list[Session]:
        """Return every session to and from the worker."""
        with self.lock:
            return ([self.link.dialed] if self.link.dialed else []) + self.link.accepted
