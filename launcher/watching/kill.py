"""``telegrad kill``: end a job's workers on this machine: ask them with SIGTERM, and kill those that do not end in time."""

import json
import os
import select
import signal
import time
from collections.abc import Sequence
from contextlib import suppress

from ...base.printable import printable
from .jobs import LocalWorker, choose_job, choose_workers

KILL_SECONDS = 5.0  # after SIGKILL; a process in the kernel takes longer


def end_workers(names: Sequence[str], key: str | None, grace: float, as_json: bool) -> bool:
    """End workers of a job, and print how each ended; return whether all did.

    Args:
        names: the workers; all of the job that run here, if there are none.
        key: the beginning of the job's id; None for the latest of this folder.
        grace: seconds between SIGTERM and SIGKILL; 0 kills at once.
        as_json: print one JSON object.

    Raises:
        NoJobError: there is no such job or worker.
    """
    job = choose_job(key, only_here=True)
    workers = choose_workers(job, names)
    ends = end_processes(workers, grace)
    if as_json:
        print(json.dumps({"job": job.key, "workers": ends}, indent=2))
    else:
        print(*(f"{printable(name)}: {how}" for name, how in ends.items()), sep="\n")
    return "still runs" not in ends.values()


def end_processes(workers: Sequence[LocalWorker], grace: float) -> dict[str, str]:
    """Return how each worker ended, by its name."""
    opened = {each.record.worker: each.open_process() for each in workers}
    running = {name: descriptor for name, descriptor in opened.items() if descriptor is not None}
    try:
        ends = dict.fromkeys(opened, "had ended")
        for how, signals, seconds in (
            ("ended by SIGTERM", (signal.SIGTERM, signal.SIGCONT), grace),  # a stopped process ends when it goes on
            ("killed by SIGKILL", (signal.SIGKILL,), KILL_SECONDS),
        ):
            if seconds > 0 and running:
                _send(running, signals)
                gone = _wait(running, seconds)
                ends |= dict.fromkeys(gone, how)
                running = {name: each for name, each in running.items() if name not in gone}
        return ends | dict.fromkeys(running, "still runs")
    finally:
        for descriptor in opened.values():
            if descriptor is not None:
                os.close(descriptor)


def _send(running: dict[str, int], signals: Sequence[int]) -> None:
    for descriptor in running.values():
        for number in signals:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(descriptor, number)


def _wait(running: dict[str, int], seconds: float) -> list[str]:
    """Return the names of those whose processes have ended after at most ``seconds``."""
    deadline, poll = time.monotonic() + seconds, select.poll()
    left = {descriptor: name for name, descriptor in running.items()}
    for descriptor in left:
        poll.register(descriptor, select.POLLIN)
    while left and (remaining := deadline - time.monotonic()) > 0:
        for descriptor, _ in poll.poll(remaining * 1000):
            poll.unregister(descriptor)
            del left[descriptor]
    return [name for name, descriptor in running.items() if descriptor not in left]
