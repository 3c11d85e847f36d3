"""Job of a contender that a launcher starts, as users do: ``start.py launched telegrad --workers 32``.

The launcher is Telegrad's own, and ``mpiexec`` for MPI. It takes input and output of its workers, so rank 0 opens those of
this process.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from .contender import parse

LAUNCHER = "from telegrad.launcher.cli import main; main()"


def main(arguments: Sequence[str]) -> None:
    """Run the launcher of a job whose rank 0 the runner asks, and exit with its status."""
    options = parse(arguments)
    workers = str(options.workers)
    requests, answers = (f"/proc/{os.getpid()}/fd/{descriptor}" for descriptor in (0, 1))
    with tempfile.TemporaryDirectory(prefix="bench") as logs:
        launcher = [sys.executable, "-c", LAUNCHER, "run", "-n", workers, "--log-dir", logs]
        if options.library == "mpi":
            launcher = [mpiexec(), "-n", workers, sys.executable]
        program = [sys.argv[0], "contender", *arguments, "--launched", requests, answers]
        # What the launcher shows is no answer.
        done = subprocess.run([*launcher, *program], stdin=subprocess.DEVNULL, stdout=sys.stderr)
    sys.exit(done.returncode)


def mpiexec() -> str:
    """Return the path of ``mpiexec``: that beside this interpreter, or else the system's."""
    folder = Path(sys.executable).parent
    return shutil.which("mpiexec", path=f"{folder}{os.pathsep}{os.environ['PATH']}") or "mpiexec"
