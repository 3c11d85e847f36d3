"""Rendezvous in a file: each worker appends its record under a lock and reads until all are there.

Every line carries an HMAC with the job's secret, and the file must belong to this user alone: anybody who could write into
it could put another address in the place of a worker's.

A file serves one rendezvous: a leftover of an earlier run is seen by its full list and refused, because a worker of that
run might still be about to read it.
"""

from __future__ import annotations

import contextlib
import fcntl
import hmac
import json
import logging
import os
import stat
import time
from collections.abc import Iterator
from typing import Any, TextIO

from google.protobuf import json_format

from ..core.errors import RendezvousError
from ..proto.rpc_pb2 import WorkerRecord
from .members import MemberList
from .notices import Notices
from .private_file import open_private
from .security import Credentials, sign

logger = logging.getLogger("telegrad.rpc")
POLL_SECONDS = 0.02
GRACE_SECONDS = 1.0  # after the deadline, to write into the file that this worker gave up
MOST_CHARACTERS = 64 * 1024 * 1024
PURPOSE = b"rendezvous file"


def join_in_file(path: str, me: Credentials, world_size: int, timeout: float) -> list[WorkerRecord]:
    """Write the record of ``me`` into the file and wait until all ``world_size`` workers did so.

    Args:
        path: the file.
        me: the worker that joins.
        world_size: number of workers.
        timeout: seconds to wait for all.

    Raises:
        RendezvousError: the file cannot be used, a worker did not join, or two workers contradict each other.
    """
    return _FileRendezvous(path, me.secret, world_size, timeout).join(me.record)


class _FileRendezvous:
    """A worker's part in the rendezvous."""

    def __init__(self, path: str, secret: bytes, world_size: int, timeout: float) -> None:
        self._path = path
        self._secret = secret
        self._world_size = world_size
        self._timeout = timeout
        self._deadline = time.monotonic() + timeout

    def join(self, me: WorkerRecord) -> list[WorkerRecord]:
        self._append(me)
        notices = Notices(time.monotonic())
        while True:
            with self._locked(os.O_RDONLY) as file:
                members = self._read(file)
            if members.failure:
                raise RendezvousError(f"{members.failure} ({self._path}; if it was left by an earlier run, delete it)")
            if members.complete:
                return members.workers()
            if time.monotonic() > self._deadline:
                self._call_off()
                continue
            if notices.due(time.monotonic()):
                logger.warning("worker %r waits for the others in %s: %s", me.name, self._path, members.missing())
            time.sleep(POLL_SECONDS)

    def _append(self, me: WorkerRecord) -> None:
        with self._locked(os.O_RDWR | os.O_CREAT) as file:
            if self._read(file).complete:
                raise self._error("holds a finished rendezvous", "delete it, or name a new file")
            self._write(file, {"world_size": self._world_size, "worker": json_format.MessageToDict(me)})

    def _call_off(self) -> None:
        """Fail the rendezvous for all, also for workers that come later and would count those that gave up."""
        with self._locked(os.O_RDWR) as file:
            members = self._read(file)
            if not members.complete and not members.failure:
                why = f"the rendezvous did not fill within {self._timeout:g} s: {members.missing()}"
                self._write(file, {"failure": why})

    # -- the file

    @contextlib.contextmanager
    def _locked(self, flags: int) -> Iterator[TextIO]:
        """Open the file and lock it. Another process may hold the lock, but not for ever."""
        reading = flags == os.O_RDONLY
        try:
            descriptor = open_private(self._path, flags, stat.S_IWGRP | stat.S_IWOTH)
        except OSError as error:
            raise self._error(f"cannot be used: {error.strerror}", "name a new file in a folder of your own") from error
        with open(descriptor, "r" if reading else "r+", encoding="utf-8", errors="replace") as file:
            while not _try_lock(descriptor, fcntl.LOCK_SH if reading else fcntl.LOCK_EX):
                if time.monotonic() > self._deadline + GRACE_SECONDS:
                    raise self._error(
                        f"was locked by another process for {self._timeout:g} s", "end that process, or name a new file"
                    )
                time.sleep(POLL_SECONDS)
            yield file

    def _write(self, file: TextIO, entry: dict[str, Any]) -> None:
        line = json.dumps(entry)
        file.write(f"{self._sign(line)} {line}\n")

    def _read(self, file: TextIO) -> MemberList:
        """Return the members so far; contradictions are kept in the list, lines that make no sense raise."""
        members = MemberList(self._world_size)
        text = file.read(MOST_CHARACTERS)
        for line in text.splitlines():
            entry = self._entry(line)
            if isinstance(entry, str):
                members.failure = entry
                break
            try:
                members.join(*entry)
            except RendezvousError:
                break
        return members

    def _entry(self, line: str) -> tuple[WorkerRecord, int] | str:
        """Return a worker that joined and the world size it knows, or why the rendezvous has failed."""
        mac, _, text = line.partition(" ")
        if not hmac.compare_digest(mac.encode(), self._sign(text).encode()):
            raise self._error(
                "holds something else than lines signed with this job's secret",
                "name a new file, and give all workers the same TELEGRAD_SECRET",
            )
        entry = json.loads(text)
        if "failure" in entry:
            return str(entry["failure"])
        return json_format.ParseDict(entry["worker"], WorkerRecord()), int(entry["world_size"])

    def _sign(self, line: str) -> str:
        return sign(self._secret, PURPOSE, line.encode("utf-8", "replace")).hex()

    def _error(self, what: str, advice: str) -> RendezvousError:
        return RendezvousError(f"the rendezvous file {self._path} {what}; {advice}")


def _try_lock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
