"""Records of the workers that run: each leaves one in the user's private folder, so that commands find all jobs alike.

A record is removed when its worker leaves its job. Of a process that was killed it stays; the next reader removes it, as the
process's number has no process of that start any more. What a record says is a claim: before a signal is sent, or an answer
believed, the process is compared with it.
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from .job_folder import VARIABLE, JobFolder, job_folders
from .processes import numbers_place, process_status, process_user

FORMAT = 1  # of records, and of what is said at the workers' sockets
LOG_VARIABLE = "TELEGRAD_LOG_FILE"  # by which a launcher tells a worker where its output goes
RESTART_COUNT_VARIABLE = "TELEGRAD_RESTART_COUNT"  # ... and how often the worker has been started again
EVENT_FILES = "TELEGRAD_TENSORBOARD"  # folder for what the workers log, which core/recording/event_files.py reads
RECORD, SOCKET, DUMPS = ".json", ".sock", ".stacks"
MANY_FILES = 100
RECENT_NANOSECONDS = 100_000_000
MOST_RECORD_BYTES = 1 << 16
LATEST = float(1 << 40)  # seconds since the epoch; also not "nan", nor a number that no float holds
KINDS = {"str": (str,), "int": (int,), "float": (int, float)}


@dataclass(frozen=True, slots=True)
class JobRecord:
    """Record of a worker that runs.

    Attributes:
        stem: beginning of the names of its files.
        worker, rank, world_size: its name, its rank, and the number of workers; 0 workers in a dynamic group.
        job: the job's id, equal at all its workers.
        joined: the job's workers have come together.
        process_id, process_start, place: its process, the time of that one's start, and where the number is valid.
        host, folder, program, log: its machine, current folder and script; the file with its output, empty if there is none.
        dump_signal: the signal at which it writes its threads' stacks; 0 for none.
        began: seconds since the epoch.
        version: of this package.
        restarts: how often its launcher has started the worker again.
        format: of this record.
        launcher: path of the socket of its launcher, which starts more workers; empty if there is none.
    """

    stem: str
    worker: str
    rank: int
    world_size: int
    job: str
    process_id: int
    process_start: int
    place: str
    host: str
    folder: str
    program: str
    log: str
    dump_signal: int
    began: float
    version: str
    joined: bool = False
    restarts: int = 0
    format: int = FORMAT
    launcher: str = ""

    @property
    def readable(self) -> bool:
        """Return whether this version knows what is in the record, and how to ask the worker."""
        return self.format == FORMAT

    @property
    def runs(self) -> bool:
        """Return whether the process that wrote it still runs, as a process of this user."""
        status = process_status(self.process_id)
        same = status is not None and status.state != "dead" and status.start == self.process_start
        return same and process_user(self.process_id) == os.geteuid()


def own_facts() -> dict[str, Any]:
    """Return what a record says about this process."""
    status = process_status(os.getpid())
    return {
        "process_id": os.getpid(),
        "process_start": status.start if status else 0,
        "place": numbers_place(),
        "host": platform.node(),
        "folder": _current_folder(),
    }


def write_record(folder: JobFolder, record: JobRecord) -> None:
    """Write a worker's record, in the place of its earlier one.

    Raises:
        OSError: it cannot be written.
    """
    folder.write(record.stem + RECORD, json.dumps(asdict(record)).encode())


def remove_record(folder: JobFolder, stem: str) -> None:
    """Remove a worker's record, its socket's name and its dumps."""
    for suffix in (RECORD, SOCKET, DUMPS):
        folder.remove(stem + suffix)


def sweep_records(folder: JobFolder) -> None:
    """Remove the records of processes that have ended, if there are many files: where no command runs, no reader does it."""
    if len(folder.names()) > MANY_FILES:
        for _ in _records(folder):
            pass


def read_records() -> list[tuple[Path, JobRecord]]:
    """Return the records of this user's workers that run here, each with its folder. Those of processes that ended are removed.

    Raises:
        PermissionError: the folder that ``TELEGRAD_JOBS_DIR`` names cannot be used.
    """
    found = []
    for path in job_folders():
        try:
            with JobFolder(path) as folder:
                found += [(path, record) for record in _records(folder)]
        except OSError as error:
            if VARIABLE in os.environ and not isinstance(error, FileNotFoundError):
                why = f"the folder {path}, which {VARIABLE} names, cannot be used: {error.strerror}"
                raise PermissionError(why) from None
    return sorted(found, key=lambda item: (item[1].began, item[1].process_id))


def records_stamp() -> tuple[int, ...]:
    """Return numbers that are others when a worker of this user has come, joined or left: when the folders were changed."""
    found = []
    for path in job_folders():
        with suppress(OSError):
            changed, now = os.stat(path).st_mtime_ns, time.time_ns()
            # Changes within a tick of the kernel's clock have one time, so a recent one may be followed by another unseen.
            found.append(changed if now - changed > RECENT_NANOSECONDS else now)
    return tuple(found)


def _records(folder: JobFolder) -> Iterator[JobRecord]:
    for name in folder.names():
        if not name.endswith(RECORD) or name.startswith("."):
            continue
        record = None
        with suppress(OSError, ValueError, RecursionError):
            record = parse_record(folder.read(name, MOST_RECORD_BYTES), name.removesuffix(RECORD))
        # Numbers of another machine's processes, or of another container's, say nothing here.
        if record is None or record.place != numbers_place():
            continue
        if record.runs:
            yield record
        else:
            remove_record(folder, record.stem)


def parse_record(data: bytes, stem: str) -> JobRecord:
    """Return the record that a file holds.

    Args:
        data: JSON. A record of another version may have other fields; what this one knows must be there.
        stem: beginning of the file's name.

    Raises:
        ValueError: it is none.
    """
    facts = json.loads(data)
    if not isinstance(facts, dict):
        raise ValueError("a record is a JSON object")
    known = {each.name: facts[each.name] for each in fields(JobRecord) if each.name in facts}
    try:
        record = JobRecord(**known)
    except TypeError as error:
        raise ValueError(str(error)) from None
    for each in fields(JobRecord):
        kinds = KINDS.get(str(each.type), (bool,))
        if type(getattr(record, each.name)) not in kinds:
            raise ValueError(f"{each.name} is no {each.type}")
    if record.stem != stem or record.process_id <= 1 or "/" in stem:
        raise ValueError("it names other files, or no process of a worker")
    if not 0 <= record.began <= LATEST:
        raise ValueError("it began at no time that there is")
    return record


def _current_folder() -> str:
    try:
        return os.getcwd()
    except OSError:  # it was removed
        return ""
