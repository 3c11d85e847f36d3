"""Table of the calls under way, and their deadlines."""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...core.futures import Future
from ..threads.timers import NEVER, Timers, run_logged
from ..wire.messages import QUESTIONS, Method, Outgoing

if TYPE_CHECKING:
    from ..threads.notices import LongWaits

NO_WORK = QUESTIONS | {Method.PULL}  # for later items of a stream, and about workers: shutdown does not wait for them
DEADLINE_LOOK_SECONDS = 1e-5  # for each call, between two looks at all deadlines: looks take a small part of the time


class PendingCall(Outgoing):
    """Request, from when it is made until it is answered, or another wait (``to`` is -1).

    The thread that takes it out of the table completes its future, once.

    Attributes:
        began: when it was made, or its time-out began, by the clock of the program.
        future: holds the answer.
    """

    __slots__ = ("began", "future")

    began: float
    future: Future[Any]

    def ends(self) -> float:
        return self.began + self.timeout if self.timeout else 0.0

    def done(self) -> bool:
        return self.future.done()


class CallTable:
    """Calls under way of one agent.

    It has no lock: a call is added once, under an id of its own, and the thread whose ``del`` succeeds has taken it.
    All deadlines share one alarm. It is set to the first deadline, or to an earlier one of a call that was answered since. When
    it rings, all calls are looked at, so that an answered call has nothing to remove.

    Args:
        timers: where the deadlines are kept.
        expired: called with a call whose deadline has passed; it was taken out before.

    Attributes:
        calls: the calls by id; others only read it.
        ids, clock: as ``new_call`` uses them.
        notices: tells of calls that wait for long, if set.
    """

    def __init__(self, timers: Timers, expired: Callable[[PendingCall], object]) -> None:
        self.clock = timers.program
        self._expired = expired
        # The first id is random: an answer to another incarnation of this worker must not match. It is not drawn from the
        # program's generator: that would change a seeded program, and equally seeded workers would have equal ids.
        self._first = secrets.randbits(48)
        self.ids = itertools.count(self._first)
        self._waits = itertools.count(-1, -1)  # ids of waits, which no message has
        self.calls: dict[int, PendingCall] = {}
        self._deadlines = timers.alarm(self._expire)
        self._latest = self._first - 1
        self.notices: LongWaits[int] | None = None

    @property
    def sent(self) -> int:
        """Return how many requests were sent so far."""
        return self._latest - self._first + 1

    def __len__(self) -> int:
        return len(self.calls)

    def new_call(self, method: int, timeout: float, to: int, what: object) -> PendingCall:
        """Return a call that is not in the table yet, with an id that none has had.

        Args:
            method: which handler answers.
            timeout: seconds from now; 0 for none.
            to: number of the callee; -1 for a wait that no single worker can end.
            what: its text names the call in errors; it is made only for them.
        """
        now = self.clock.now()
        call_id = next(self.ids if to >= 0 else self._waits)
        call = PendingCall(method, call_id, timeout, to)
        call.began, call.what, call.future = now, what, Future()
        return call

    def add(self, call: PendingCall) -> None:
        """Add a call that is about to be sent."""
        self.calls[call.call_id] = call
        if call.to >= 0:
            self._latest = call.call_id
        # After the call was added: a look at the calls that missed it has reset the alarms before these lines read them.
        if call.timeout and call.began + call.timeout < self._deadlines.when:
            self._deadlines.set(self.clock.real(call.began + call.timeout))
        if (notices := self.notices) is not None and not notices.looking:
            notices.begin()

    def expire_in(self, call: PendingCall, seconds: float) -> None:
        """Give a call without a time-out one that begins now; if it has one, nothing changes."""
        if not call.timeout:
            call.began, call.timeout = self.clock.now(), seconds
            self._deadlines.set(self.clock.real(call.began + seconds))

    def take(self, call_id: int) -> PendingCall | None:
        """Remove and return a call; return ``None`` if another thread has removed it."""
        call = self.calls.get(call_id)
        try:
            del self.calls[call_id]
        except KeyError:
            return None
        return call

    def find(self, condition: Callable[[PendingCall], bool]) -> list[PendingCall]:
        """Return the calls that fulfil a condition."""
        return [call for call in self._listed() if condition(call)]

    def open(self) -> int:
        """Return how many calls are under way, without those for later items of a stream, and questions about workers."""
        return sum(call.method not in NO_WORK for call in self._listed())

    def age(self, call: PendingCall) -> float:
        """Return the seconds since a call was made."""
        return self.clock.now() - call.began

    def since(self) -> list[tuple[int, float]]:
        """Return the ids of the calls under way, and when they began, without those of ``NO_WORK``."""
        return [(call.call_id, self.clock.real(call.began)) for call in self._listed() if call.method not in NO_WORK]

    def older_than(self, seconds: float) -> list[PendingCall]:
        """Return the calls under way that are older than ``seconds``, the oldest first, without those of ``NO_WORK``."""
        calls = [call for call in self._listed() if self.age(call) > seconds and call.method not in NO_WORK]
        return sorted(calls, key=self.age, reverse=True)

    def descriptions(self) -> list[str]:
        """Return a text for each call under way, for people."""
        return [str(call.what) for call in self._listed()]

    def _listed(self) -> list[PendingCall]:
        return list(self.calls.copy().values())

    def _expire(self) -> None:
        now, first = self.clock.now(), NEVER
        due = []
        for call in self._listed():
            if not call.timeout:
                continue
            deadline = call.began + call.timeout
            if deadline <= now:
                due.append(call)
            elif deadline < first:
                first = deadline
        if first < NEVER:
            self._deadlines.set(self.clock.real(max(first, now + DEADLINE_LOOK_SECONDS * len(self.calls))))
        for call in due:
            if self.take(call.call_id):
                run_logged(self._expired, call)  # an error must not keep the other calls from expiring
