"""The meeting in a file: each worker appends its record under a lock and reads until everybody is there.

A file serves one meeting: a leftover of an earlier run is seen by its full list and refused, because a worker of that run
might still be about to read it.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from typing import Any

from google.protobuf import json_format

from ..core.errors import RendezvousError
from ..proto.telegrad_pb2 import WorkerRecord
from .roster import Roster

POLL_SECONDS = 0.02


def meet_in_file(path: str, me: WorkerRecord, world_size: int, timeout: float) -> list[WorkerRecord]:
    """Write ``me`` into the file and wait until all ``world_size`` workers did.

    Raises:
        RendezvousError: the file cannot be used, somebody did not come, or two workers contradict each other.
    """
    deadline = time.monotonic() + timeout
    _append(path, me, world_size)
    while True:
        roster = _read(path, world_size)
        if roster.failure:
            raise RendezvousError(f"{roster.failure} ({path}; if it was left by an earlier run, delete it)")
        if roster.complete:
            return roster.workers()
        if time.monotonic() > deadline:
            _call_off(path, world_size, f"the rendezvous did not fill within {timeout:g} s")
        time.sleep(POLL_SECONDS)


def _append(path: str, me: WorkerRecord, world_size: int) -> None:
    line = json.dumps({"world_size": world_size, "worker": json_format.MessageToDict(me)})
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise RendezvousError(f"the rendezvous file {path} cannot be opened: {error.strerror}") from error
    with os.fdopen(descriptor, "r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        if _parse(path, file.read(), world_size).complete:
            raise RendezvousError(f"the rendezvous file {path} holds a finished meeting; delete it, or name a new file")
        file.write(line + "\n")


def _call_off(path: str, world_size: int, why: str) -> None:
    """Fail the meeting for all, also for who comes later and would take those that gave up for present."""
    with open(path, "r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        roster = _parse(path, file.read(), world_size)
        if not roster.complete and not roster.failure:
            file.write(json.dumps({"failure": f"{why}: {roster.missing()}"}) + "\n")


def _read(path: str, world_size: int) -> Roster:
    try:
        opened = open(path)  # noqa: SIM115  # closed below
    except OSError as error:
        raise RendezvousError(f"the rendezvous file {path} is gone: {error.strerror}; was it deleted?") from error
    with opened as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        return _parse(path, file.read(), world_size)


def _parse(path: str, text: str, world_size: int) -> Roster:
    roster = Roster(world_size)
    try:
        for line in text.splitlines():
            if not _take(roster, json.loads(line)):
                break
    except (ValueError, TypeError, KeyError, AttributeError, json_format.ParseError) as error:
        raise RendezvousError(f"the rendezvous file {path} holds something else; name a new file") from error
    return roster


def _take(roster: Roster, entry: Any) -> bool:
    """Take one line's entry; False: the meeting has failed, what follows does not count."""
    if failure := entry.get("failure"):
        roster.failure = str(failure)
        return False
    try:
        roster.join(json_format.ParseDict(entry["worker"], WorkerRecord()), int(entry["world_size"]))
    except RendezvousError:
        return False
    return True
