"""``telegrad top``: the workers of a job, again and again: on a terminal in place, else one table after the other."""

import json
import sys
import time
from collections.abc import Sequence
from contextlib import closing, suppress
from typing import Any

from ...base.printable import printable
from ...rpc.observing import Explanation, Observation
from .jobs import LocalJob, NoJobError, choose_job
from .texts import columns, size
from .watched_job import WatchedJob

TOP_COLUMNS = ("WORKER", "RESTARTS", "CPU", "MEMORY", "POOL", "WAITING", "CALLS", "SERVES", "ON THE WAY", "PROGRESS")
TOP_RIGHT = range(1, 9)


class JobTable:
    """Table of a job's workers, made anew from each round of observations.

    Args:
        job: the job.
        timeout: seconds that a worker has to answer.
    """

    def __init__(self, job: LocalJob, timeout: float) -> None:
        self._watched = WatchedJob(job, timeout, ["loops"])
        self._used: dict[str, tuple[float, float]] = {}  # by worker: when it was seen, and its processor time then
        self.seen: list[Observation] = []
        self.why = Explanation([], [])

    def look(self) -> str:
        """Observe the job, and return the table.

        Raises:
            NoJobError: it has ended.
        """
        self.seen = self._watched.look()
        self.why = self._watched.why
        rows = [TOP_COLUMNS, *(self._row(each) for each in self.seen)]
        cause = self.why.first_line()
        return columns(rows, TOP_RIGHT) + (f"\n{printable(cause, 1000)}" if cause else "")

    def close(self) -> None:
        """Close the connections to its workers."""
        self._watched.close()

    def _row(self, worker: Observation) -> tuple[object, ...]:
        share, known = self._share(worker), self._watched.job.worker(worker.worker)
        restarts = known.record.restarts if known else "-"
        if worker.error:
            return (
                worker.worker,
                restarts,
                share,
                size(worker.memory_bytes),
                *"-----",
                worker.process_state or worker.error,
            )
        pool = f"{worker.pool_busy}/{worker.pool_threads}"
        counts = (worker.pool_waiting, worker.totals.get("calls", 0), worker.totals.get("requests", 0))
        return (
            worker.worker,
            restarts,
            share,
            size(worker.memory_bytes),
            pool,
            *counts,
            size(worker.on_the_way_bytes),
            _progress(worker),
        )

    def _share(self, worker: Observation) -> str:
        """Return the part of a processor that a worker has used since it was last seen."""
        now = time.monotonic()
        before, used = self._used.get(worker.worker, (now, worker.cpu_seconds))
        self._used[worker.worker] = (now, worker.cpu_seconds)
        share = (worker.cpu_seconds - used) / (now - before) if now > before else -1.0
        return f"{100 * share:.0f}%" if 0 <= share < 1e6 else "-"


def watch_job(key: str | None, interval: float, timeout: float, once: bool, as_json: bool) -> None:
    """Print a job's table until the job ends, or once.

    Args:
        key: the beginning of the job's id; None for the latest of this folder.
        interval: seconds between two looks.
        timeout: seconds that a worker has to answer.
        once: look once.
        as_json: print a JSON object for each look, in a line of its own.

    Raises:
        NoJobError: there is no such job.
    """
    table = JobTable(choose_job(key), timeout)
    with closing(table), suppress(KeyboardInterrupt):
        first = table.look()
        if once or as_json or not sys.stdout.isatty():
            _print_tables(table, first, interval, once, as_json)
        else:
            _show_in_place(table, first, interval)


def _print_tables(table: JobTable, first: str, interval: float, once: bool, as_json: bool) -> None:
    text = first
    while True:
        print(json.dumps(_object(table)) if as_json else text, flush=True)
        if once:
            return
        time.sleep(interval)
        try:
            text = table.look()
        except NoJobError:
            return
        if not as_json:
            print()


def _show_in_place(table: JobTable, first: str, interval: float) -> None:
    from rich.live import Live
    from rich.text import Text

    with Live(Text(first, no_wrap=True, overflow="ellipsis"), auto_refresh=False, screen=True) as live:
        while True:
            time.sleep(interval)
            try:
                live.update(Text(table.look(), no_wrap=True, overflow="ellipsis"), refresh=True)
            except NoJobError:
                return


def _progress(worker: Observation) -> str:
    loops = [each for each in worker.loops if not each.ended][:3]
    return ", ".join(
        f"{each.description or 'loop'} {each.done:,}{f'/{each.total:,}' if each.total else ''}" for each in loops
    )


def _object(table: JobTable) -> dict[str, Any]:
    names: Sequence[str] = ("memory_bytes", "cpu_seconds", "pool_busy", "pool_threads", "pool_waiting", "totals")
    workers = [
        {"worker": each.worker, "error": each.error or None, **{name: getattr(each, name) for name in names}}
        for each in table.seen
    ]
    return {"workers": workers, "why": table.why.first_line()}
