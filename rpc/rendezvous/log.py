"""Rendezvous in a log: each worker appends its record, and reads until all are there. A file or a store keeps the log.

Every line carries an HMAC with the job's secret. Without it, anybody who can write into the log could replace a worker's
address by another. All workers see the lines in the same order. The first line that completes the member list, or says that
the rendezvous has failed, decides.

A log serves one rendezvous of ``init_rpc``. That of an earlier run is recognized by its complete member list and refused,
because a worker of that run might not have read it yet. Beside it, it serves process groups, one after the other: a line after
the one that completed the last group, or after its failure, begins the next.
"""

from __future__ import annotations

import hmac
import json
import logging
import time
from typing import Any, Protocol

from google.protobuf import json_format

from ...base.errors import RendezvousError
from ...proto.rpc_pb2 import WorkerRecord
from ..security.handshake import PROTOCOL, Credentials
from ..security.proofs import sign
from ..threads.notices import WaitNotices
from .members import MemberList

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


class SignedLog:
    """Log whose lines are JSON objects, each with an HMAC with the job's secret.

    Args:
        log: the log.
        secret: the job's secret.
    """

    def __init__(self, log: Log, secret: bytes) -> None:
        self._log = log
        self._secret = secret

    def append(self, entry: dict[str, Any]) -> None:
        """Append a line.

        Raises:
            RendezvousError: the log cannot be written.
        """
        line = json.dumps(entry)
        self._log.append(f"{self._sign(line)} {line}")

    def read(self) -> list[dict[str, Any]]:
        """Return the lines that came since the last call.

        Raises:
            RendezvousError: the log cannot be read, or a line has not this job's signature.
        """
        return list(map(self._checked, self._log.read()))

    def error(self, what: str, advice: str) -> RendezvousError:
        """Return an error that names the log."""
        return RendezvousError(f"{self._log.name} {what}; {advice}")

    def _checked(self, line: str) -> dict[str, Any]:
        mac, _, text = line.partition(" ")
        if not hmac.compare_digest(mac.encode(), self._sign(text).encode()):
            raise self.error(
                "holds something else than lines signed with this job's secret, an earlier job's perhaps",
                f"{self._log.remedy}, and give all workers the same TELEGRAD_SECRET",
            )
        entry: dict[str, Any] = json.loads(text)
        return entry

    def _sign(self, line: str) -> str:
        return sign(self._secret, PURPOSE, line.encode("utf-8", "replace")).hex()


def describe_worker(me: WorkerRecord) -> dict[str, Any]:
    """Return the entry of a worker that joins: its record and its protocol."""
    return {"protocol": PROTOCOL, "worker": json_format.MessageToDict(me)}


def described_worker(entry: dict[str, Any]) -> WorkerRecord | str:
    """Return the worker of such an entry, or why it and this worker do not understand each other."""
    # Before the record is parsed: the record of another version may have fields that this one does not know.
    if (protocol := entry.get("protocol", "3 or older")) != PROTOCOL:
        name = entry["worker"]["name"]
        return f"worker {name!r} speaks protocol {protocol}, this worker {PROTOCOL}; use one version of telegrad"
    return json_format.ParseDict(entry["worker"], WorkerRecord())


def join_in_log(log: Log, me: Credentials, world_size: int, timeout: float, purpose: str = "") -> list[WorkerRecord]:
    """Append the record of ``me`` to the log and wait until all ``world_size`` workers did so.

    Args:
        log: the log.
        me: the worker that joins.
        world_size: number of workers.
        timeout: seconds to wait for all.
        purpose: of the rendezvous.

    Raises:
        RendezvousError: the log cannot be used, a worker did not join, or two workers contradict each other.
    """
    return _Joining(log, me, world_size, timeout, purpose).run()


class _Joining:
    """A worker's part in the rendezvous."""

    def __init__(self, log: Log, me: Credentials, world_size: int, timeout: float, purpose: str) -> None:
        self._log = log
        self._lines = SignedLog(log, me.secret)
        self._purpose = purpose
        self._me = me
        self._repeats = bool(purpose)
        self._world_size = world_size
        self._members = MemberList(world_size)
        self._came = False  # this worker's own line was read
        self._timeout = timeout
        self._deadline = time.monotonic() + timeout

    def run(self) -> list[WorkerRecord]:
        self._read()
        if self._members.complete and not self._repeats:
            raise self._finished()
        me = self._me.record
        self._append({**describe_worker(me), "world_size": self._world_size})
        notices = WaitNotices(time.monotonic())
        while not self._decided():
            if time.monotonic() > self._deadline:
                # The line is for all workers, also for those that come later: they must not count the workers that gave up.
                why = f"the rendezvous did not fill within {self._timeout:g} s: {self._members.missing()}"
                self._append({"failure": why})
                continue
            if notices.due(time.monotonic()):
                missing = self._members.missing()
                logger.warning("worker %r waits for the others in %s: %s", me.name, self._log.name, missing)
            time.sleep(self._log.pause)
        if self._members.failure:
            raise self._failed()
        if not self._members.has(me):
            raise self._finished()
        return self._members.workers()

    def _decided(self) -> bool:
        self._read()
        return self._over() and (self._came or not self._repeats)

    def _over(self) -> bool:
        return self._members.complete or bool(self._members.failure)

    def _read(self) -> None:
        """Take the lines that came."""
        for line in self._lines.read():
            if (entry := self._entry(line)) is not None:
                self._apply(entry)

    def _apply(self, entry: tuple[WorkerRecord, int] | str) -> None:
        if self._over():
            if self._came or not self._repeats:
                return  # lines after the one that decided do not count
            self._members = MemberList(self._world_size)
        if isinstance(entry, str):
            self._members.failure = entry
            return
        worker, world_size = entry
        if not self._members.workers() and self._repeats:
            self._members = MemberList(world_size)  # this may be an earlier group, of another size
        self._came = self._came or worker.identity == self._me.record.identity
        try:
            self._members.join(worker, world_size)
        except RendezvousError:
            pass  # the member list keeps the reason

    def _entry(self, line: dict[str, Any]) -> tuple[WorkerRecord, int] | str | None:
        """Return a worker that joined and its world size, or the reason why the rendezvous has failed.

        ``None`` is for lines of another purpose.
        """
        if line.get("purpose", "") != self._purpose:
            return None
        if "failure" in line:
            return str(line["failure"])
        if "world_size" not in line:
            return "a dynamic group is there, whose workers give no world_size"
        worker = described_worker(line)
        return worker if isinstance(worker, str) else (worker, int(line["world_size"]))

    def _append(self, entry: dict[str, Any]) -> None:
        self._lines.append({**entry, "purpose": self._purpose} if self._purpose else entry)

    def _failed(self) -> RendezvousError:
        left = f"{self._log.name}; if it was left by an earlier run, {self._log.remedy}"
        return RendezvousError(f"{self._members.failure} ({left})")

    def _finished(self) -> RendezvousError:
        return self._lines.error("holds a finished rendezvous", self._log.remedy)
