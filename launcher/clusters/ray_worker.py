"""Ray's actor for one worker: a launcher that starts the worker's process where Ray has placed the actor.

The driver (``ray_job.py``) calls its methods in their order; ``end`` at any time. The worker's private key is made here.
"""

import io
import os
import threading
from contextlib import closing
from importlib.metadata import version
from queue import Queue
from typing import NamedTuple, TextIO, cast

from ..environment import reserve_port
from ..job import launch
from ..nodes.assignment import Placement
from ..nodes.conclusion import outcome_of
from ..nodes.outcome import Outcome
from ..nodes.part import JobPart, worker_files
from ..spec import JobSpec

MOST_RAY_CHUNKS = 16  # of output that the driver has not fetched; each has at most some 64 KiB


class Spot(NamedTuple):
    """Machine on which Ray has placed an actor.

    Attributes:
        machine: Ray's id of it.
        host: its address.
        version: of telegrad there.
    """

    machine: str
    host: str
    version: str


class Certified(NamedTuple):
    """Certificate of a worker and that of the job's authority, as PEM."""

    certificate: bytes
    authority: bytes


class RayWorker:
    """Actor for one worker.

    Args:
        folder: in which the worker runs.

    Raises:
        OSError: there is no such folder.
    """

    def __init__(self, folder: str) -> None:
        os.chdir(folder)
        self._said: Queue[str | Outcome] = Queue(MOST_RAY_CHUNKS)
        self._key = b""
        self._part: JobPart | None = None
        self._lock = threading.Lock()
        self._ended_because = ""

    def spot(self) -> Spot:
        """Return where this actor is."""
        import ray

        return Spot(ray.get_runtime_context().get_node_id(), ray.util.get_node_ip_address(), version("telegrad"))

    def prepare(self, host: str) -> tuple[int, bytes]:
        """Return a port for rank 0, reserved until the worker has ended, and the public half of a new key.

        Args:
            host: address of this machine at which rank 0 would listen.
        """
        from ...rpc.certificates import new_key

        self._reserved = reserve_port(host)
        self._key, public = new_key()
        return self._reserved.getsockname()[1], public

    def start(self, spec: JobSpec, placement: Placement, secret: str, certified: Certified | None) -> None:
        """Start the worker; return at once.

        Args:
            spec: the job of this worker alone.
            placement: its rank, and where others are.
            secret: the job's.
            certified: what this worker shows to others; None if all are on one machine.
        """
        files = worker_files(certified.certificate, self._key, certified.authority) if certified else {}
        threading.Thread(target=self._run, args=(spec, JobPart(placement, secret, [files])), daemon=True).start()

    def read(self) -> str | Outcome:
        """Wait for the next lines of the worker, and return them; at last its outcome, once."""
        return self._said.get()

    def end(self, reason: str) -> None:
        """End the worker: asked first, killed after the grace."""
        with self._lock:
            self._ended_because = reason
            if self._part is not None:
                self._part.end(reason)

    def _run(self, spec: JobSpec, part: JobPart) -> None:
        try:
            with self._reserved, closing(part):
                self._said.put(self._launched(spec, part))
        except Exception as error:
            self._said.put(Outcome(1, f"{spec.workers[0]} could not be started: {error}"))

    def _launched(self, spec: JobSpec, part: JobPart) -> Outcome:
        with self._lock:
            self._part = part
            if self._ended_because:
                part.end(self._ended_because)
        try:
            return outcome_of(launch(spec, cast(TextIO, Chunks(self._said)), part))
        finally:
            with self._lock:
                self._part = None


class Chunks(io.TextIOBase):
    """Stream whose text goes to a queue; it waits where the queue is full."""

    def __init__(self, queue: "Queue[str | Outcome]") -> None:
        self._queue = queue

    def write(self, text: str) -> int:
        """Queue a text."""
        self._queue.put(text)
        return len(text)
