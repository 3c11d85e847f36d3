"""Rendezvous in a log: each worker appends its record, and reads until all are there. A file or a store keeps the log.

Every line carries an HMAC with the job's secret. Without it, anybody who can write into the log could replace a worker's
address by another. All workers see the lines in the same order. The first line that completes the member list, or says that
the rendezvous has failed, decides.

A log serves one rendezvous. The log of an earlier run is recognized by its complete member list and refused, because a worker
of that run might not have read it yet.
"""

from __future__ import annotations

import hmac
import json
import logging
import time
from typing import Any, Protocol

from google.protobuf import json_format

from ..core.errors import RendezvousError
from ..proto.rpc_pb2 import WorkerRecord
from .members import MemberList
from .notices import Notices
from .security import PROTOCOL, Credentials, sign

logger = logging.getLogger("telegrad.rpc")
PURPOSE = b"rendezvous file"


class Log(Protocol):
    """Lines that workers append and read, in the same order for all.

    Attributes:
        name: name of the log, for messages: "the rendezvous file /x".
        remedy: advice for a user whose log cannot be used: "delete it, or name a new file".
        pause: seconds between two reads.
    """

    name: str
    remedy: str
    pause: float

    def append(self, line: str) -> None:
        """Append a line.

        Raises:
            RendezvousError: the log cannot be written.
        """
        ...

    def read(self) -> list[str]:
        """Return the lines that came since the last call.

        Raises:
            RendezvousError: the log cannot be read.
        """
        ...


def join_in_log(log: Log, me: Credentials, world_size: int, timeout: float) -> list[WorkerRecord]:
    """Append the record of ``me`` to the log and wait until all ``world_size`` workers did so.

    Args:
        log: the log.
        me: the worker that joins.
        world_size: number of workers.
        timeout: seconds to wait for all.

    Raises:
        RendezvousError: the log cannot be used, a worker did not join, or two workers contradict each other.
    """
    return _Joining(log, me, world_size, timeout).run()


class _Joining:
    """A worker's part in the rendezvous."""

    def __init__(self, log: Log, me: Credentials, world_size: int, timeout: float) -> None:
        self._log = log
        self._me = me
        self._members = MemberList(world_size)
        self._timeout = timeout
        self._deadline = time.monotonic() + timeout

    def run(self) -> list[WorkerRecord]:
        self._read()
        if self._members.complete:
            raise self._finished()
        me, members = self._me.record, self._members
        self._append({"protocol": PROTOCOL, "world_size": members.world_size, "worker": json_format.MessageToDict(me)})
        notices = Notices(time.monotonic())
        while not self._decided():
            if time.monotonic() > self._deadline:
                # The line is for all workers, also for those that come later: they must not count the workers that gave up.
                why = f"the rendezvous did not fill within {self._timeout:g} s: {members.missing()}"
                self._append({"failure": why})
                continue
            if notices.due(time.monotonic()):
                logger.warning("worker %r waits for the others in %s: %s", me.name, self._log.name, members.missing())
            time.sleep(self._log.pause)
        if members.failure:
            left = f"{self._log.name}; if it was left by an earlier run, {self._log.remedy}"
            raise RendezvousError(f"{members.failure} ({left})")
        if not members.has(me):
            raise self._finished()
        return members.workers()

    def _decided(self) -> bool:
        self._read()
        return self._members.complete or bool(self._members.failure)

    def _read(self) -> None:
        """Take the lines that came. Lines after the one that decided do not count."""
        for line in self._log.read():
            entry = self._entry(line)
            if self._members.complete or self._members.failure:
                continue
            if isinstance(entry, str):
                self._members.failure = entry
                continue
            try:
                self._members.join(*entry)
            except RendezvousError:
                pass  # the member list keeps the reason

    def _entry(self, line: str) -> tuple[WorkerRecord, int] | str:
        """Return a worker that joined and its world size, or the reason why the rendezvous has failed."""
        mac, _, text = line.partition(" ")
        if not hmac.compare_digest(mac.encode(), self._sign(text).encode()):
            raise self._error(
                "holds something else than lines signed with this job's secret, an earlier job's perhaps",
                f"{self._log.remedy}, and give all workers the same TELEGRAD_SECRET",
            )
        entry = json.loads(text)
        if "failure" in entry:
            return str(entry["failure"])
        # Before the record is parsed: the record of another version may have fields that this one does not know.
        if (protocol := entry.get("protocol", "3 or older")) != PROTOCOL:
            name = entry["worker"]["name"]
            return f"worker {name!r} speaks protocol {protocol}, this worker {PROTOCOL}; use one version of telegrad"
        return json_format.ParseDict(entry["worker"], WorkerRecord()), int(entry["world_size"])

    def _append(self, entry: dict[str, Any]) -> None:
        line = json.dumps(entry)
        self._log.append(f"{self._sign(line)} {line}")

    def _sign(self, line: str) -> str:
        return sign(self._me.secret, PURPOSE, line.encode("utf-8", "replace")).hex()

    def _finished(self) -> RendezvousError:
        return self._error("holds a finished rendezvous", self._log.remedy)

    def _error(self, what: str, advice: str) -> RendezvousError:
        return RendezvousError(f"{self._log.name} {what}; {advice}")
