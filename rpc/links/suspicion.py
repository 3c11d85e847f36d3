"""Suspicion against a worker: the evidence that follows from failed dials.

When a session breaks, its dialer dials again. If the same incarnation of the worker answers, only the session was lost.
Otherwise the failure is evidence against the worker: nothing or another process listens at its address, or nothing has
answered for ``reconnect_timeout``. A failure of this worker's own (no descriptors, no memory) is no evidence.
All workers together decide what follows from the evidence (``verdict.py``).
"""

from __future__ import annotations

import errno
from typing import NamedTuple

from ...base.errors import AuthenticationError
from .reports import Evidence, LinkFinding

# Errors that prove the worker dead: nothing listens at its address, or another process does, or another incarnation.
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


class Suspicion:
    """Evidence against one worker, without locks and clocks.

    Attributes:
        trouble: the evidence; ``None`` if there is none.
    """

    __slots__ = ("_answered_since", "_broken_since", "trouble")

    def __init__(self) -> None:
        self.trouble: Trouble | None = None
        self._broken_since: float | None = None  # moved on by the time in which the worker's system answered a dialer
        # When its system first answered on the session that is being dialed.
        self._answered_since: float | None = None

    def answered(self, now: float) -> None:
        """Note that the worker's system answers a dialer."""
        self._answered_since = now

    def cleared(self) -> None:
        """Drop all evidence: a session is open, or the worker is gone."""
        self.trouble = self._broken_since = self._answered_since = None

    def failed(self, error: Exception, now: float, timeout: float) -> None:
        """Note that the dialed session ended, or could not be made.

        Args:
            error: why.
            now: monotonic seconds.
            timeout: seconds of silence after which the worker counts as unreachable.
        """
        self._omit_answered(now)
        if _is_own(error):
            self._broken_since = None
        elif isinstance(error, PROOF):
            # The time counts from the first proof, as in the verdicts, not from the silence before it.
            proven = self.trouble is not None and self.trouble.evidence.finding is LinkFinding.DEAD
            since = self.trouble.since if self.trouble is not None and proven else now
            self.trouble = Trouble(Evidence(LinkFinding.DEAD, _proof(error)), since)
        elif self._broken_since is None:
            self._broken_since = now
        elif now - self._broken_since >= timeout and self.trouble is None:
            self.trouble = Trouble(Evidence(LinkFinding.SILENT, f"no connection within {timeout:g} s ({error})"), now)

    def _omit_answered(self, now: float) -> None:
        if self._answered_since is not None and self._broken_since is not None:
            self._broken_since += now - self._answered_since
        self._answered_since = None


def _is_own(error: Exception) -> bool:
    """Return whether an error has its cause in this process, and so says nothing about a peer."""
    if isinstance(error, OSError):
        return error.errno in OWN_ERRORS
    return isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and "start new thread" in str(error))


def _proof(error: Exception) -> str:
    if isinstance(error, ConnectionRefusedError):
        return "its process died, or ended without rpc.shutdown() (connection refused)"
    return f"what answers at its address does not prove to be this worker ({error})"
