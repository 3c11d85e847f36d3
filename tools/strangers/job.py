"""Attacked job: two workers, the duration of their calls, and the memory that they use."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...launcher.environment import job_environment, reserve_port

SAMPLE_SECONDS = 0.05
END_SECONDS = 60.0


@dataclass
class Phase:
    """Effect of one attack on the job."""

    name: str
    done: int = 0
    milliseconds: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    grown: float = 0.0
    refused: dict[str, int] = field(default_factory=dict)

    def percentile(self, share: float) -> float:
        """Return the duration, in milliseconds, within which that share of the calls was answered."""
        ordered = sorted(self.milliseconds) or [float("nan")]
        return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


class Job:
    """Two worker processes; ``port`` is the attacked one: rank 0's, the port of the rendezvous."""

    def __init__(self) -> None:
        with closing(reserve_port()) as reserved:
            self.port: int = reserved.getsockname()[1]
            environment = {**os.environ, **job_environment(2, self.port), "GRPC_VERBOSITY": "NONE"}
        self.workers = [
            subprocess.Popen(
                [sys.executable, "-m", f"{__package__}.worker", str(rank)],
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for rank in range(2)
        ]
        try:
            for rank in range(2):
                assert self._read(rank) == "ready\n", f"worker {rank} of the attacked job did not start"
        except BaseException:
            self.kill()
            raise

    @contextlib.contextmanager
    def phase(self, name: str) -> Iterator[Phase]:
        """Watch the job while it is attacked."""
        found = Phase(name)
        self._ask(1)
        over = threading.Event()
        before = self.memory()
        sampler = threading.Thread(target=self._sample, args=(found, before, over))
        sampler.start()
        try:
            yield found
        finally:
            over.set()
            sampler.join()
        deadline = time.monotonic() + END_SECONDS
        while not found.milliseconds and time.monotonic() < deadline:  # a short attack may end during the first call
            told = self._ask(1)
            found.milliseconds += told["milliseconds"]
            found.errors += told["errors"]
            time.sleep(SAMPLE_SECONDS)
        found.refused = self._ask(0)

    def memory(self) -> float:
        """Return the memory of the attacked worker, in MiB."""
        pages = int(Path(f"/proc/{self.workers[0].pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20

    def end(self) -> None:
        """Let the workers shut down.

        Raises:
            RuntimeError: one of them failed.
        """
        for worker in self.workers:
            assert worker.stdin is not None
            worker.stdin.close()
        codes = [worker.wait(END_SECONDS) for worker in self.workers]
        if any(codes):
            raise RuntimeError(f"the attacked workers ended with {codes}")

    def kill(self) -> None:
        """Kill its processes."""
        for worker in self.workers:
            with worker:
                worker.kill()

    def _sample(self, found: Phase, before: float, over: threading.Event) -> None:
        while not over.wait(SAMPLE_SECONDS):
            found.grown = max(found.grown, self.memory() - before)
        found.grown = max(found.grown, self.memory() - before)

    def _ask(self, rank: int) -> Any:
        pipe = self.workers[rank].stdin
        assert pipe is not None
        pipe.write("\n")
        pipe.flush()
        return json.loads(self._read(rank))

    def _read(self, rank: int) -> str:
        pipe = self.workers[rank].stdout
        assert pipe is not None
        return pipe.readline()
