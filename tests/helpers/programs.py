"""Programs that tests run in processes of their own."""

import faulthandler
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from contextlib import closing, contextmanager
from multiprocessing import forkserver
from pathlib import Path

from telegrad.launcher.environment import job_environment, reserve_port

PROGRAMS = Path(__file__).parents[1] / "programs"


def run_python(*arguments, code=0, timeout=120, **options):
    """Run an interpreter to its end, and return what it wrote to standard output.

    Args:
        arguments: of the interpreter, as ``"-c", program``.
        code: the expected exit code; at another one the test fails, and shows all that was written.
        timeout: seconds until the test fails.
        options: of ``subprocess.run``, as ``cwd``, ``env`` and ``input``.
    """
    done = subprocess.run(
        [sys.executable, *map(str, arguments)], capture_output=True, text=True, timeout=timeout, **options
    )
    assert done.returncode == code, f"exit code {done.returncode}:\n{done.stdout}{done.stderr}"
    return done.stdout if not code else done.stdout + done.stderr


def is_running(pid):
    """Return whether there is a process of that id that is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@contextmanager
def ending_within(seconds):
    """Show all stacks and end this process if the body takes longer: its worker processes die with it."""
    faulthandler.dump_traceback_later(seconds, exit=True)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()


class Job:
    """Worker processes that run a script of tests/programs, without a launcher: one that dies does not end the others."""

    def __init__(self, folder, program, count, args=(), **environment):
        self.folder = folder
        with closing(reserve_port()) as reserved:
            shared = job_environment(count, reserved.getsockname()[1])
        self.environment = {**os.environ, **shared, "PYTHONFAULTHANDLER": "1", "OMP_NUM_THREADS": "1", **environment}
        self.script = str(PROGRAMS / f"{program}.py")
        self.processes = [self.start(rank, *args) for rank in range(count)]

    def start(self, rank, *args, **environment):
        """One more process."""
        with open(self.log(rank), "ab") as log:
            return subprocess.Popen(
                [sys.executable, self.script, *map(str, args)],
                env={**self.environment, "RANK": str(rank), **environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def log(self, rank):
        return self.folder / f"worker{rank}.log"

    def output(self, rank):
        return self.log(rank).read_text()

    def outputs(self):
        return "\n".join(f"--- worker {rank}\n{self.output(rank)}" for rank in range(len(self.processes)))

    def wait(self, seconds=120.0, codes=None):
        """Wait for all; those that do not end print their stacks. Their exit codes must be 0, or ``codes``."""
        deadline = time.monotonic() + seconds
        late = []
        for rank, process in enumerate(self.processes):
            try:
                process.wait(max(deadline - time.monotonic(), 0.01))
            except subprocess.TimeoutExpired:
                late.append(rank)
                process.send_signal(signal.SIGABRT)
                process.send_signal(signal.SIGCONT)
                process.wait(60)
        found = [process.returncode for process in self.processes]
        assert not late, f"workers {late} did not end within {seconds} s:\n{self.outputs()}"
        assert found == (codes or [0] * len(found)), f"exit codes {found}:\n{self.outputs()}"

    def read_until(self, rank, word, seconds=120.0):
        """Wait until a worker has written a word."""
        deadline = time.monotonic() + seconds
        while word not in self.output(rank):
            alive = self.processes[rank].poll() is None or word in self.output(rank)
            assert alive and time.monotonic() < deadline, f"worker {rank} never wrote {word!r}:\n{self.outputs()}"
            time.sleep(0.01)

    def end(self):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait(10)


def worker_ids():
    """Return the process ids of the living children that ``multiprocessing`` started, in order."""
    return sorted(process.pid for process in multiprocessing.active_children())


def stop_fork_server():
    """End Python's fork server, which lives as long as the process that first used it."""
    forkserver._forkserver._stop()
