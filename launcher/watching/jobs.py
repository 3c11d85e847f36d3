"""Jobs of this user on this machine, from their workers' records; and the choice of one by a command's options."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ...base.job_folder import JobFolder
from ...base.job_records import SOCKET, JobRecord, own_facts, read_records
from ...base.printable import printable
from ...base.processes import caught_signals


class NoJobError(LookupError):
    """Job or worker that is not there, or of which it is not clear which is meant."""


@dataclass(frozen=True, slots=True)
class LocalWorker:
    """Worker of this machine.

    Attributes:
        record: what it says of itself.
        folder: the folder of its record.
    """

    record: JobRecord
    folder: Path

    def connect(self, timeout: float) -> socket.socket:
        """Return a connection to its socket.

        Args:
            timeout: seconds for that, and for each later step.

        Raises:
            OSError: it does not accept.
        """
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.settimeout(timeout)
            with JobFolder(self.folder) as folder:
                connection.connect(folder.place(self.record.stem + SOCKET))
            return connection
        except BaseException:
            connection.close()
            raise

    def open_process(self) -> int | None:
        """Return a descriptor of its process, which must be closed; None if that has ended, and another may have its number."""
        try:
            descriptor = os.pidfd_open(self.record.process_id)
        except OSError:
            return None
        # From here on the descriptor means one process; now it is known whether that is the one of the record.
        if self.record.runs:
            return descriptor
        os.close(descriptor)
        return None

    def send_handled_signal(self, number: int) -> bool:
        """Send its process a signal, unless that would end it; return whether it was sent."""
        if (descriptor := self.open_process()) is None:
            return False
        try:
            if not caught_signals(self.record.process_id) >> (number - 1) & 1:
                return False
            signal.pidfd_send_signal(descriptor, number)
            return True
        except OSError:
            return False
        finally:
            os.close(descriptor)


@dataclass(frozen=True, slots=True)
class LocalJob:
    """Workers of one job on this machine, in order of rank.

    Attributes:
        key: the job's id.
        workers: the workers.
    """

    key: str
    workers: list[LocalWorker]

    @property
    def folders(self) -> set[str]:
        """Return the current folders of its workers when they started."""
        return {each.record.folder for each in self.workers}

    @property
    def began(self) -> float:
        """Return when its first worker started, in seconds since the epoch."""
        return min(each.record.began for each in self.workers)

    def worker(self, name: str) -> LocalWorker | None:
        """Return a worker by its name; None if it does not run here."""
        return next((each for each in self.workers if each.record.worker == name), None)


def find_jobs() -> list[LocalJob]:
    """Return this user's jobs on this machine, the first that started first."""
    jobs: dict[str, list[LocalWorker]] = {}
    for folder, record in read_records():
        jobs.setdefault(record.job, []).append(LocalWorker(record, folder))
    found = [LocalJob(key, sorted(workers, key=_order)) for key, workers in jobs.items()]
    return sorted(found, key=lambda job: job.began)


def choose_job(key: str | None = None, only_here: bool = False, argument: str = "--job") -> LocalJob:
    """Return the job that is meant: that of the id; else the latest of the current folder; else the only one there is.

    Args:
        key: the beginning of its id; None without.
        only_here: without an id, take none of another folder.
        argument: gives the id, for the errors.

    Raises:
        NoJobError: there is none, or there are several.
    """
    jobs = find_jobs()
    if key is not None:
        return _by_key(jobs, key, argument)
    here = [job for job in jobs if own_facts()["folder"] in job.folders]
    if here:
        return here[-1]
    if len(jobs) == 1 and not only_here:
        return jobs[0]
    if not jobs:
        raise NoJobError("no job of yours runs on this machine")
    raise NoJobError(f"no job runs in this folder; choose one with {argument}: {_listed(jobs)}")


def choose_workers(job: LocalJob, names: Sequence[str]) -> list[LocalWorker]:
    """Return the workers of those names; all, if there are no names.

    Raises:
        NoJobError: one does not run here.
    """
    if missing := [name for name in names if job.worker(name) is None]:
        known = ", ".join(printable(each.record.worker) for each in job.workers)
        raise NoJobError(
            f"job {printable(job.key)} has no worker {printable(missing[0])!r} on this machine; it has {known}"
        )
    return [each for each in job.workers if not names or each.record.worker in names]


def check_readable(workers: Sequence[LocalWorker]) -> None:
    """Refuse workers that run another version, whose answers cannot be read.

    Raises:
        NoJobError: one does.
    """
    for each in workers:
        if not each.record.readable:
            name, version = printable(each.record.worker), printable(each.record.version)
            raise NoJobError(
                f"worker {name} runs telegrad {version}, which this version cannot ask; use its own telegrad"
            )


def _by_key(jobs: list[LocalJob], key: str, argument: str) -> LocalJob:
    found = [job for job in jobs if key and job.key.startswith(key)]
    if len(found) == 1:
        return found[0]
    if found:
        raise NoJobError(f"{argument} {printable(key)} means several jobs: {_listed(found)}")
    running = f"these run: {_listed(jobs)}" if jobs else "none of yours runs on this machine"
    raise NoJobError(f"there is no job {printable(key)!r}; {running}")


def _listed(jobs: Sequence[LocalJob]) -> str:
    return ", ".join(f"{printable(job.key)} ({printable(job.workers[0].record.program)})" for job in jobs[-10:])


def _order(worker: LocalWorker) -> tuple[int, str]:
    return worker.record.rank, worker.record.worker


def own_listener(port: int) -> socket.socket:
    """Return a socket that listens at a port of this machine's loopback, for the commands that serve a job's user.

    Args:
        port: 0 takes a free one.

    Raises:
        NoJobError: the port cannot be used.
    """
    try:
        return socket.create_server(("127.0.0.1", port))
    except OSError as error:
        raise NoJobError(f"port {port} cannot be used: {error.strerror or error}") from None
