"""Log of a dynamic group: a line for each worker that joins or leaves, in an order that all of its workers see.

So all agree on names, ranks and numbers, and no worker has to stay for the others' sake. The group ends with its last worker.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from ...base.errors import RendezvousError
from .group_members import GroupMembers
from .log import SignedLog, describe_worker, described_worker

if TYPE_CHECKING:
    from ...proto.rpc_pb2 import WorkerRecord
    from .file import FileLog


class GroupHistory:
    """Members that the lines of a log tell of: a pure state machine.

    A worker joins once: the lines of a worker that was a member before have no effect, and neither has one whose name or rank
    another member has at that place in the log.

    Args:
        places: number of ranks; 0 for an open group.

    Attributes:
        members: those now.
    """

    def __init__(self, places: int = 0) -> None:
        self.members = GroupMembers(places=places)
        self._joined: set[bytes] = set()  # identities

    def join(self, worker: WorkerRecord) -> None:
        """Take a worker's line."""
        if worker.identity in self._joined:
            return
        try:
            self.members.add(worker)
        except RendezvousError:
            return  # the worker reads that it is no member, and why
        self._joined.add(worker.identity)

    @property
    def begun(self) -> bool:
        """Return whether a worker has joined."""
        return bool(self._joined)

    def leave(self, number: int) -> None:
        """Take the line that the worker of a number has left, or is lost."""
        self.members.remove(number)


class GroupLog:
    """Log of a dynamic group in a file. Any thread may use it.

    Args:
        file: the file.
        secret: the job's secret.
        places: number of ranks; 0 for an open group.

    Attributes:
        name: name of the file, for messages.
        pause: seconds between two reads.
        remedy: advice for a user whose file cannot be used.
        places: as given.
    """

    def __init__(self, file: FileLog, secret: bytes, places: int = 0) -> None:
        self.name, self.pause, self.remedy = file.name, file.pause, file.remedy
        self._file = file
        self._lines = SignedLog(file, secret)
        self._history = GroupHistory(places)
        self.places = places
        self._lock = threading.Lock()

    def join(self, worker: WorkerRecord) -> None:
        """Write that a worker joins.

        Raises:
            RendezvousError: the file cannot be written.
        """
        self._lines.append({**describe_worker(worker), "group": "join", "places": self.places})

    def leave(self, number: int, seconds: float) -> None:
        """Write that the worker of a number has left or is lost, waiting up to ``seconds`` for the file.

        Raises:
            RendezvousError: the file cannot be written.
        """
        self._file.renew(seconds)
        self._lines.append({"group": "leave", "number": number})

    def read(self, seconds: float) -> GroupMembers:
        """Return the members now, waiting up to ``seconds`` for the file.

        Raises:
            RendezvousError: the file cannot be read, or it serves another purpose.
        """
        with self._lock:
            self._file.renew(seconds)
            for line in self._lines.read():
                self._apply(line)
            return self._history.members

    def _apply(self, line: dict[str, object]) -> None:
        if line.get("group") == "leave":
            self._history.leave(int(str(line["number"])))
        elif line.get("group") == "join":
            worker = described_worker(line)
            if isinstance(worker, str):
                raise self._lines.error(f"holds a group that this worker cannot join: {worker}", self.remedy)
            if (places := line.get("places", 0)) != self.places:
                given = [f"world_size={each}" if each else "no world_size" for each in (places, self.places)]
                words = f"worker {worker.name!r} gives {given[0]}, this worker {given[1]}"
                raise self._lines.error(f"holds another group: {words}", f"give all the same, or {self.remedy}")
            self._history.join(worker)
        elif not (line.get("purpose") or self._history.begun):  # process groups may come together there too
            raise self._lines.error("holds a rendezvous of a fixed world size", f"give world_size=, or {self.remedy}")
