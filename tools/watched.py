"""Cost of watching a job: processor time of its workers, and of the viewer, for one look at one worker.

    python -m telegrad.tools.watched --workers 200

The workers are idle. What they take then, and without a viewer, is subtracted. Times are those of ``/proc/*/stat``, in ticks
of 10 ms, so a measurement takes a minute or more.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from ..base.processes import process_status
from ..launcher.dashboard.looks import LOOK_PARTS
from ..launcher.watching.jobs import LocalJob, choose_job, find_jobs
from ..launcher.watching.watched_job import WatchedJob

IDLE = "from telegrad import rpc\nrpc.init_rpc()\nimport threading\nthreading.Event().wait()\n"
START_SECONDS = 600.0
VIEWERS = {"top": ["loops"], "page": list(LOOK_PARTS)}


@contextmanager
def idle_job(workers: int) -> Iterator[LocalJob]:
    """Start workers that wait; yield their job when all have joined."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TELEGRAD_JOBS_DIR"] = str(Path(folder, "jobs"))
        Path(folder, "idle.py").write_text(IDLE)
        command = [sys.executable, "-m", "telegrad.launcher", "run", "--plain", "-n", str(workers), "idle.py"]
        with subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL) as launcher:
            try:
                _wait_for_all(workers)
                yield choose_job(find_jobs()[0].key)
            finally:
                launcher.terminate()


def _wait_for_all(workers: int) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        jobs = find_jobs()
        if jobs and sum(each.record.joined for each in jobs[0].workers) == workers:
            return
        time.sleep(1.0)
    raise TimeoutError(f"the workers did not join within {START_SECONDS} s")


def measure(job: LocalJob, seconds: float, look: Callable[[], object]) -> tuple[float, float]:
    """Call ``look`` once a second; return the processor time of the workers, and of this process, in a second."""
    before, own, began = _used(job), time.process_time(), time.monotonic()
    for number in range(1, int(seconds) + 1):
        look()
        time.sleep(max(began + number - time.monotonic(), 0.0))
    elapsed = time.monotonic() - began
    return (_used(job) - before) / elapsed, (time.process_time() - own) / elapsed


def _used(job: LocalJob) -> float:
    found = [process_status(each.record.process_id) for each in job.workers]
    return sum(each.cpu_seconds for each in found if each)


def main() -> None:
    """Measure, and print a line for each viewer."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=60.0, help="of each measurement")
    given = parser.parse_args()
    with idle_job(given.workers) as job:
        time.sleep(10.0)
        idle, _ = measure(job, given.seconds, lambda: None)
        print(f"{given.workers} idle workers: {100 * idle:.1f}% of a core", flush=True)
        for name, parts in VIEWERS.items():
            with closing(WatchedJob(job, 5.0, parts)) as watched:
                workers, viewer = measure(job, given.seconds, watched.look)
            cost = max(workers - idle, 0.0)
            looks = given.workers
            print(
                f"{name}: workers {100 * cost:.1f}% of a core, {1e3 * cost / looks:.3f} ms a look and worker; "
                f"viewer {100 * viewer:.1f}%, {1e3 * viewer / looks:.3f} ms",
                flush=True,
            )


if __name__ == "__main__":
    main()
