"""Flow control of every session of one agent."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from .flow import Flow, Resume

if TYPE_CHECKING:
    from ...core.futures import ProgramClock
    from ..lanes.session import Session
    from ..wire.control import Amount


class Flows:
    """Maker of the flow control of each session, when it is first asked for.

    Args:
        limit: how much may be in flight on one session.
        clock: that of the deadlines of messages.
        resume: starts a request that was held.
    """

    def __init__(self, limit: Amount, clock: ProgramClock, resume: Resume) -> None:
        self._limit = limit
        self._clock = clock
        self._resume = resume
        self._lock = threading.Lock()

    def of(self, session: Session) -> Flow:
        """Return the flow control of a session."""
        if session.flow is None:
            with self._lock:
                if session.flow is None:
                    session.flow = Flow(session, self._limit, self._clock, self._resume)
        flow: Flow = session.flow
        return flow
