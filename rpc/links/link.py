"""Link to a worker: its states, the table of its transitions, and all retries of sessions.

``LINK_TRANSITIONS`` is the whole behaviour of a link. ``docs/design/rpc_connections.md`` has the same table; a test compares
them.
Three things are tried again, and nothing else is:

* A session that ended is dialed again: at once, then after pauses that grow with each failure (``Link.redial_at``).
* Calls on a session that ended before it was open were never sent. They go by the next one (``Link.kept``).
* A call that finds its session closed goes by another one, up to ``ROUTES`` times in all (``Link.found_closed``).
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from ...base.errors import IllegalEventError

if TYPE_CHECKING:
    from ..lanes.session import Session

REDIAL_SECONDS = 0.1
REDIAL_CAP_SECONDS = 2.0
REDIAL_DOUBLINGS = 10  # the exponent is bounded: a link may be cut for days
ROUTES = 3  # sessions that one call tries: each may close just before it is used


class LinkState(Enum):
    """State of a link."""

    UNDIALED = "undialed"  # no session was dialed, or a call found it closed; nothing is due
    DIALING = "dialing"  # a session is being made; calls wait in it
    OPEN = "open"  # the dialed session is open
    BROKEN = "broken"  # the session ended, and is dialed again at a given time or by the next message
    CUT = "cut"  # the worker stays in the job, and calls to it fail; the redials go on
    GONE = "gone"  # the worker is lost or has left, for good


class LinkEvent(Enum):
    """Event that changes the state of a link."""

    DIAL = "dial"  # there is no session, and a message is to leave or a redial is due
    OPENED = "opened"  # the dialed session is open
    ENDED = "ended"  # the dialed session ended, or could not be made
    FOUND_CLOSED = "found closed"  # a message could not go by the dialed session; its end is told later
    OTHER_ENDED = "other ended"  # a session that the worker dialed ended, or one that was found closed
    CUT_OFF = "cut off"  # the worker could not be dialed (``Losses._update_cut``), and stays in the job
    LOST = "lost"  # the worker is lost or has left


class LinkAction(Enum):
    """Instruction that a transition gives."""

    START = "start"  # start a new session; what was kept goes by it
    ANNOUNCE = "announce"  # count redials anew, forget evidence, send what waits; calls on former sessions fail
    KEEP = "keep"  # if the session never was open, its calls go by the next one
    REDIAL = "redial"  # dial again after a pause, at first of no length, unless that is due already
    FAIL = "fail"  # all calls fail, and control messages go through a third worker
    DROP = "drop"  # close every session, and drop what was kept; all calls fail


START, ANNOUNCE, KEEP = LinkAction.START, LinkAction.ANNOUNCE, LinkAction.KEEP
REDIAL, FAIL, DROP = LinkAction.REDIAL, LinkAction.FAIL, LinkAction.DROP
Actions = tuple[LinkAction, ...]
LINK_TRANSITIONS: dict[tuple[LinkState, LinkEvent], tuple[LinkState, Actions]] = {
    (LinkState.UNDIALED, LinkEvent.DIAL): (LinkState.DIALING, (START,)),
    (LinkState.UNDIALED, LinkEvent.OTHER_ENDED): (LinkState.BROKEN, (REDIAL,)),
    (LinkState.UNDIALED, LinkEvent.CUT_OFF): (LinkState.CUT, (FAIL, REDIAL)),
    (LinkState.UNDIALED, LinkEvent.LOST): (LinkState.GONE, (DROP,)),
    (LinkState.DIALING, LinkEvent.OPENED): (LinkState.OPEN, (ANNOUNCE,)),
    (LinkState.DIALING, LinkEvent.ENDED): (LinkState.BROKEN, (KEEP, REDIAL)),
    (LinkState.DIALING, LinkEvent.FOUND_CLOSED): (LinkState.UNDIALED, (KEEP,)),
    (LinkState.DIALING, LinkEvent.OTHER_ENDED): (LinkState.DIALING, ()),
    (LinkState.DIALING, LinkEvent.CUT_OFF): (LinkState.CUT, (FAIL,)),
    (LinkState.DIALING, LinkEvent.LOST): (LinkState.GONE, (DROP,)),
    (LinkState.OPEN, LinkEvent.ENDED): (LinkState.BROKEN, (REDIAL,)),
    (LinkState.OPEN, LinkEvent.FOUND_CLOSED): (LinkState.UNDIALED, ()),
    (LinkState.OPEN, LinkEvent.OTHER_ENDED): (LinkState.OPEN, ()),
    (LinkState.OPEN, LinkEvent.CUT_OFF): (LinkState.OPEN, ()),
    (LinkState.OPEN, LinkEvent.LOST): (LinkState.GONE, (DROP,)),
    (LinkState.BROKEN, LinkEvent.DIAL): (LinkState.DIALING, (START,)),
    (LinkState.BROKEN, LinkEvent.OTHER_ENDED): (LinkState.BROKEN, ()),
    (LinkState.BROKEN, LinkEvent.CUT_OFF): (LinkState.CUT, (FAIL,)),
    (LinkState.BROKEN, LinkEvent.LOST): (LinkState.GONE, (DROP,)),
    (LinkState.CUT, LinkEvent.DIAL): (LinkState.CUT, (START,)),
    (LinkState.CUT, LinkEvent.OPENED): (LinkState.OPEN, (ANNOUNCE,)),
    (LinkState.CUT, LinkEvent.ENDED): (LinkState.CUT, (KEEP, REDIAL)),
    (LinkState.CUT, LinkEvent.FOUND_CLOSED): (LinkState.CUT, (KEEP, REDIAL)),
    (LinkState.CUT, LinkEvent.OTHER_ENDED): (LinkState.CUT, ()),
    (LinkState.CUT, LinkEvent.CUT_OFF): (LinkState.CUT, ()),
    (LinkState.CUT, LinkEvent.LOST): (LinkState.GONE, (DROP,)),
    **{(LinkState.GONE, event): (LinkState.GONE, ()) for event in LinkEvent},
}


class Link:
    """Link to one worker, without locks, timers and I/O. ``Peer`` guards it, and ``sessions.py`` drives it.

    The state is that of the session that this worker dials. If the worker's own session to this one ends, it is dialed
    from here too: then both know whether only the session was lost.

    Attributes:
        state: its state.
        reason: why it is cut, or why the worker is gone; empty in the other states.
        dialed: the session that is being made or is open. A link that is cut has one while a redial is under way.
        kept: the last dialed session, if it ended before it was open: what waits in it goes by the next one.
        accepted: the sessions that the worker dialed.
        latest: the session of the latest request in either direction: threads may read there.
        redial_at: when it is dialed again, in the agent's seconds; ``None`` while no redial is due.
    """

    __slots__ = ("_redials", "accepted", "dialed", "kept", "latest", "reason", "redial_at", "state")

    def __init__(self) -> None:
        self.state = LinkState.UNDIALED
        self.reason = ""
        self.dialed: Session | None = None
        self.kept: Session | None = None
        self.accepted: list[Session] = []
        self.latest: Session | None = None
        self.redial_at: float | None = None
        self._redials = 0  # since it was last open

    def next(self, event: LinkEvent) -> tuple[LinkState, Actions]:
        """Return the state after an event, and the instructions that follow. Nothing is changed.

        Raises:
            IllegalEventError: the event cannot happen in this state.
        """
        transition = LINK_TRANSITIONS.get((self.state, event))
        if transition is None:
            raise IllegalEventError(
                f"a link is {self.state.value}, which does not allow the event {event.value!r}; report this, with what "
                f"your program did"
            )
        return transition

    # No method calls anything between its first and its last assignment: so an interrupt leaves no state in part.

    @property
    def dials(self) -> bool:
        """Return whether a message that is to leave now, or a redial that is due, begins a new session."""
        return self.dialed is None and START in self.next(LinkEvent.DIAL)[1]

    def dial(self, fresh: Session) -> Actions:
        """Note that a session is being made, by which that goes which was kept. Only if ``dials``."""
        state, actions = self.next(LinkEvent.DIAL)
        self.state, self.dialed, self.kept, self.redial_at = state, fresh, None, None
        return actions

    def opened(self, session: Session) -> Actions:
        """Note that a session is open that this worker dialed. Without effect if a message found it closed meanwhile."""
        if session is not self.dialed:
            return ()
        state, actions = self.next(LinkEvent.OPENED)
        if ANNOUNCE in actions:
            self.state, self.reason, self.latest, self.redial_at, self._redials = state, "", None, None, 0
        return actions

    def ended(self, session: Session, now: float) -> Actions:
        """Note that a session ended, or could not be made."""
        if session is self.dialed:
            return self._without(session, LinkEvent.ENDED, now)
        state, actions = self.next(LinkEvent.OTHER_ENDED)
        redials = self._redial(actions, now)
        if session in self.accepted:
            self.accepted.remove(session)
        self.state, (self.redial_at, self._redials) = state, redials
        return actions

    def found_closed(self, session: Session, now: float, tried: int = ROUTES) -> bool:
        """Note that a message could not go by a session, because it is closed.

        Args:
            session: the session; its end may not have been reported yet.
            now: the agent's seconds.
            tried: how many sessions that message has tried.

        Returns:
            Whether the message may try another one.
        """
        if session is self.dialed:
            self._without(session, LinkEvent.FOUND_CLOSED, now)
        return tried < ROUTES

    def cut_off(self, reason: str, now: float) -> Actions:
        """Note that the link is cut: the worker stays in the job."""
        state, actions = self.next(LinkEvent.CUT_OFF)
        redials = self._redial(actions, now)
        if FAIL in actions:
            self.state, self.reason, (self.redial_at, self._redials) = state, reason, redials
        return actions

    def lost(self, reason: str) -> Actions:
        """Note that the worker is lost or has left."""
        state, actions = self.next(LinkEvent.LOST)
        if DROP in actions:
            self.state, self.reason, self.redial_at, self.latest = state, reason, None, None
        return actions

    def _without(self, session: Session, event: LinkEvent, now: float) -> Actions:
        state, actions = self.next(event)
        redials = self._redial(actions, now)
        # Its last frames may have left just before its opening is told.
        kept = session if KEEP in actions and not session.opened else None
        self.state, self.dialed, self.kept, (self.redial_at, self._redials) = state, None, kept, redials
        return actions

    def _redial(self, actions: Actions, now: float) -> tuple[float | None, int]:
        """Return the time of the next redial, and how many there were since the link was open."""
        if REDIAL not in actions or self.redial_at is not None:
            return self.redial_at, self._redials
        doublings = min(self._redials, REDIAL_DOUBLINGS)
        pause = min(REDIAL_SECONDS * 2.0**doublings, REDIAL_CAP_SECONDS) if doublings else 0.0
        return now + pause, self._redials + 1
