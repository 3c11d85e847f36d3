"""Job of a contender that Telegrad's own launcher starts, as users do: ``start.py launched telegrad --workers 32``.

The launcher takes input and output of its workers, so rank 0 opens those of this process.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence

from .contender import parse

LAUNCHER = "from telegrad.launcher.cli import main; main()"


def main(arguments: Sequence[str]) -> None:
    """Run the launcher of a job whose rank 0 the runner asks, and exit with its status."""
    workers = str(parse(arguments).workers)
    requests, answers = (f"/proc/{os.getpid()}/fd/{descriptor}" for descriptor in (0, 1))
    with tempfile.TemporaryDirectory(prefix="bench") as logs:
        launcher = [sys.executable, "-c", LAUNCHER, "run", "-n", workers, "--log-dir", logs]
        program = [sys.argv[0], "contender", *arguments, "--launched", requests, answers]
        # What the launcher shows is no answer.
        done = subprocess.run([*launcher, *program], stdin=subprocess.DEVNULL, stdout=sys.stderr)
    sys.exit(done.returncode)
