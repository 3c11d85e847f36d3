"""Rendezvous of a group in a file: a worker writes that it joins, and then asks every member to know it.

The line in the file gives it its number, and settles which of two workers of one name has it. A member answers with those that
it knows, once it has read the file up to that line. So when all earlier members have answered, each worker that this one will
call knows it. A member that does not answer may be lost: then another of them writes so, or does not name it in its answer.

In a job of fixed size that replaces lost workers no worker is asked before all have come together: each reads who they are.
Until then, and when no earlier member is left, no worker says who is lost. So the worker that needs a place writes that the
one before it has left, if that is proven dead.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING

from ...base.errors import AuthenticationError, RendezvousError
from ...core.futures import interruptible
from ..lanes.addresses import join_address
from ..links.worker_records import WorkerRecords
from ..threads.ioloop import acquire_loop, release_loop
from ..threads.notices import WaitNotices
from .file import FILE_GRACE_SECONDS, FileLog
from .group_log import GroupLog
from .group_members import GOODBYE_SECONDS, GroupMembers
from .rendezvous import Rendezvous
from .tcp import SILENT, Admit, Joining, RendezvousHost, failure_of

if TYPE_CHECKING:
    from ...proto.rpc_pb2 import WorkerRecord
    from ..lanes.lane import Lane
    from ..security.handshake import Credentials

logger = logging.getLogger("telegrad.rpc")
SCHEME = "grpc://"


class GroupRendezvous(Rendezvous):
    """Rendezvous of a group in a file.

    Args:
        make: makes the file's log; gets the seconds that joining may take.
        places: number of ranks of a job of fixed size that replaces lost workers; 0 for an open group.
    """

    def __init__(self, make: Callable[[float], FileLog], places: int = 0) -> None:
        self._places = places
        self._make = make
        self._host: RendezvousHost

    def prepare(self, lanes: list[Lane], rank: int, host: str | None, secured: bool) -> str | None:
        self._host = RendezvousHost.on(lanes)  # later workers join at this one
        return host and join_address(host, 0)

    def join(self, me: Credentials, world_size: int, timeout: float, keepalive: float) -> WorkerRecords:
        self.log = GroupLog(self._make(timeout), me.secret, self._places)
        self._host.wait(me.record, 0, timeout)
        entering = _Entering(self.log, me, timeout, keepalive)
        records = entering.run()
        self.absent = entering.absent
        return records

    def open_group(self, admit: Admit) -> None:
        self._host.open_group(admit)


class _Entering:
    """One worker's way into the group. Its thread reads the file; its questions to members run on the loop."""

    def __init__(self, log: GroupLog, me: Credentials, timeout: float, keepalive: float) -> None:
        self._log = log
        self._me = me
        self._timeout = timeout
        self._keepalive = keepalive
        self._deadline = time.monotonic() + timeout
        self._free_at = time.monotonic() + GOODBYE_SECONDS  # a worker that has left has said so by then
        self._notices = WaitNotices(time.monotonic())
        self._number: int | None = None
        self._asked: dict[int, Future[WorkerRecords]] = {}  # by member's number: the question that is under way
        self._heard: set[int] = set()  # numbers of the members that have answered anything
        self._knowers: dict[int, set[int]] = {}  # by number of a member that knows this worker: all that it knows
        self._failures: dict[int, str] = {}  # by member's number: why the last question to it failed
        self._dead: set[int] = set()  # numbers of the members whose process is proven to have ended
        self.absent: list[WorkerRecord] = []

    def run(self) -> WorkerRecords:
        self._thread = acquire_loop()
        entered = False
        try:
            while (records := self._try(self._log.read(self._left()))) is None:
                interruptible(time.sleep, self._log.pause)
            entered = True
            return records
        finally:
            if self._number is not None and not entered:
                self._log.leave(self._number, FILE_GRACE_SECONDS)
            for question in self._asked.values():
                question.cancel()
            release_loop()

    def _left(self) -> float:
        return max(self._deadline - time.monotonic(), 0.0)

    def _try(self, members: GroupMembers) -> WorkerRecords | None:
        """Go on as far as the file and the answers allow; return the records of the members when all know this worker."""
        me = self._me.record
        before, self._number = self._number, members.number_of(me)
        if members.places and not members.founders:
            self._meet(members)
            return None
        if any(each.identity == me.identity for each in members.founders):
            return WorkerRecords.of(members.founders)
        if self._number is not None:
            known = [each for each in members.records() if each.number <= self._number and self._is_there(each.number)]
            silent = [each for each in known if each.number not in {self._number, *self._knowers}]
            if not silent:
                self.absent = members.absent(self._number, {each.number for each in known})
                return WorkerRecords.of(known)
        elif before is not None:
            raise RendezvousError(f"worker {me.name!r} was counted as lost while it joined; start it again")
        elif (holder := members.holder(me)) is None:
            members.check(me)
            self._log.join(me)
            return None
        else:
            silent = [holder]
            if holder.number in self._heard and time.monotonic() > self._free_at:
                members.check(me)
        if members.places and self._dead.issuperset(each.number for each in silent):
            silent = self._earlier(members)  # is any of them left to say who is lost?
            if self._dead.issuperset(each.number for each in silent):
                self._remove(silent)
        for member in silent:
            self._ask(member)
        self._tell(silent)
        return None

    def _meet(self, members: GroupMembers) -> None:
        """Go on as far as possible towards the first meeting of all workers of a job of fixed size."""
        if self._number is None:
            if (holder := members.holder(self._me.record)) is None:
                members.check(self._me.record)
                self._log.join(self._me.record)
            elif holder.number in self._dead:
                self._remove([holder])
            else:
                self._ask(holder)
        self._tell([], members.missing())

    def _earlier(self, members: GroupMembers) -> list[WorkerRecord]:
        """Return the members before this worker: later ones wait for it, as it would for them."""
        number = self._number
        return [each for each in members.records() if number is None or each.number < number]

    def _remove(self, members: list[WorkerRecord]) -> None:
        for member in members:
            self._log.leave(member.number, self._left())

    def _is_there(self, number: int) -> bool:
        """Return whether all that know this worker know that member; one that does not counts it as lost."""
        return all(number in known for known in self._knowers.values())

    def _ask(self, member: WorkerRecord) -> None:
        """Ask a member, unless it is being asked, and take its answer."""
        number = member.number
        question = self._asked.get(number)
        if question is None:
            self._asked[number] = asyncio.run_coroutine_threadsafe(self._question(member), self._thread.loop)
        elif question.done():
            del self._asked[number]
            try:
                self._note(number, question.result())
            except AuthenticationError as error:
                if not self._log.places:
                    raise  # waiting does not help
                self._failures[number] = str(error)  # another worker may have the port of one that has died
            except (OSError, asyncio.TimeoutError) as error:
                if isinstance(error, ConnectionRefusedError):
                    self._dead.add(number)
                self._failures[number] = failure_of(error)

    def _note(self, number: int, answer: WorkerRecords) -> None:
        self._heard.add(number)
        if self._number in (known := {each.number for each in answer}):
            self._knowers[number] = known

    async def _question(self, member: WorkerRecord) -> WorkerRecords:
        joining = Joining(self._me, address_of(member), 0, self._left(), self._keepalive, host=member)
        return await joining.attempt()

    def _tell(self, silent: list[WorkerRecord], missing: str = "") -> None:
        """Tell the user of a long wait; raise at the deadline."""
        name = self._me.record.name
        if missing and time.monotonic() > self._deadline:
            raise RendezvousError(
                f"the rendezvous in {self._log.name} did not fill within {self._timeout:g} s: {missing}; start them all"
            )
        if time.monotonic() > self._deadline:
            raise RendezvousError(
                f"worker {name!r} could not join the group in {self._log.name} within {self._timeout:g} s: "
                f"{self._describe(silent)}, and has not left; if no worker of that group runs any more, {self._log.remedy}"
            )
        if self._notices.due(time.monotonic()):
            reason = missing or self._describe(silent)
            logger.warning("worker %r waits to join the group in %s: %s", name, self._log.name, reason)

    def _describe(self, silent: list[WorkerRecord]) -> str:
        first = silent[0]
        reason = self._failures.get(first.number, SILENT)
        more = f" and {len(silent) - 1} more" if len(silent) > 1 else ""
        return f"worker {first.name!r} (process {first.process_id}){more} does not answer at {address_of(first)} ({reason})"


def address_of(member: WorkerRecord) -> str:
    """Return the "host:port" at which a member's gRPC lane listens."""
    return next(each.removeprefix(SCHEME) for each in member.addresses if each.startswith(SCHEME))
