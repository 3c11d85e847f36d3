"""``python -m telegrad.benchmarks.scale 200``: a job of many workers on this machine: start, calls, a barrier, the end; memory.

``--peer torch=PYTHON --peer-workers 32`` runs PyTorch's, with ``torchrun``, in the same run.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

PROGRAM = str(Path(__file__).with_name("scale_worker.py"))
LONGEST_SECONDS = 600.0


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the jobs and print a line for each."""
    parser = argparse.ArgumentParser(prog="python -m telegrad.benchmarks.scale", description=__doc__)
    parser.add_argument("workers", nargs="*", type=int, default=[200])
    parser.add_argument("--peer", help="torch=PYTHON")
    parser.add_argument("--peer-workers", type=int, default=32)
    given = parser.parse_args(arguments)
    print(f"{'':18} {'start s':>8} {'calls s':>8} {'barrier s':>9} {'end s':>8} {'MiB':>8} {'MiB/worker':>10}")
    for workers in given.workers:
        _print("telegrad", workers, run("telegrad", sys.executable, workers))
    if given.peer:
        library, _, python = given.peer.partition("=")
        _print(library, given.peer_workers, run(library, python, given.peer_workers))


def run(library: str, python: str, workers: int) -> dict[str, float]:
    """Run one job and return its times, in seconds, and its memory, in MiB.

    Args:
        library: ``telegrad`` or ``torch``.
        python: an interpreter that has it.
        workers: how many.

    Raises:
        subprocess.CalledProcessError: the job failed.
    """
    with tempfile.TemporaryDirectory(prefix="scale") as folder:
        launcher = {
            "telegrad": ["-m", "telegrad.launcher", "run", "-n", str(workers), "--log-dir", folder],
            "torch": ["-m", "torch.distributed.run", "--nproc-per-node", str(workers)],
        }[library]
        file = Path(folder) / "figures.json"
        command = [python, *launcher, PROGRAM, library, str(time.time()), str(file)]
        subprocess.run(command, check=True, capture_output=True, timeout=LONGEST_SECONDS)
        figures: dict[str, float] = json.loads(file.read_text())
    figures["end"] = time.time() - figures.pop("until")
    return figures


def _print(library: str, workers: int, figures: dict[str, float]) -> None:
    times = f"{figures['start']:8.1f} {figures['calls']:8.2f} {figures['barrier']:9.3f} {figures['end']:8.1f}"
    print(f"{library:10} {workers:7} {times} {figures['memory']:8.0f} {figures['memory'] / workers:10.1f}", flush=True)


if __name__ == "__main__":
    main()
