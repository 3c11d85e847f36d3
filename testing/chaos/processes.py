"""Worker processes of a chaos job, on the runner's side: start, command, signal, measure, end."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from .worker import Config

POLL_SECONDS = 0.05
ANSWER_BYTES = 1 << 20


class WorkerProcess:
    """Process of one worker."""

    def __init__(self, config: Config) -> None:
        self.rank = config.rank
        self.log = Path(config.folder) / f"worker-{config.rank}.log"
        self.peak_bytes = 0
        self.shared_files: set[str] = set()
        self._config = config
        self._process: asyncio.subprocess.Process

    async def start(self, environment: dict[str, str]) -> None:
        """Start it."""
        with self.log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                f"{__package__}.worker",
                self._config.to_json(),
                env={**environment, "RANK": str(self.rank)},
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                limit=ANSWER_BYTES,
                start_new_session=True,
            )

    async def ask(self, command: str, within: float, **arguments: Any) -> dict[str, Any] | None:
        """Have a command run, one at a time; return its answer, or ``None`` if there is none ``within`` seconds."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None
        try:
            stdin.write((json.dumps({"do": command, **arguments}) + "\n").encode())
            line = await asyncio.wait_for(stdout.readline(), within)
        except (ConnectionError, asyncio.TimeoutError):
            return None
        return json.loads(line) if line.endswith(b"\n") else None

    def signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.running:
            self._process.send_signal(number)

    async def ended(self, seconds: float) -> bool:
        """Wait until it has ended; return False if it has not in time."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while self.running and loop.time() < until:
            await asyncio.sleep(POLL_SECONDS)  # Process.wait() also waits for children that hold its pipes
        return not self.running

    async def kill(self) -> None:
        """Kill it."""
        self.signal(signal.SIGKILL)
        await self.ended(10.0)

    @property
    def running(self) -> bool:
        """Return whether the process has not ended."""
        return self._process.returncode is None

    @property
    def code(self) -> int | None:
        """Exit code, negative for a signal; ``None`` while it runs."""
        return self._process.returncode

    @property
    def pid(self) -> int:
        """Process id, which is also its session's."""
        return self._process.pid

    def measure(self) -> None:
        """Record the peak of its memory, in bytes, and the named shared memory that it maps."""
        try:
            status = Path(f"/proc/{self.pid}/status").read_text()
            maps = Path(f"/proc/{self.pid}/maps").read_text()
        except OSError:
            return  # it has ended
        self.shared_files |= {line.split(maxsplit=5)[5] for line in maps.splitlines() if " /dev/shm/" in line}
        sizes = dict(line.split(":", 1) for line in status.splitlines())
        if "VmHWM" in sizes:  # a zombie has none
            self.peak_bytes = max(self.peak_bytes, int(sizes["VmHWM"].split()[0]) * 1024)

    def count_descriptors(self) -> int:
        """Return how many files and sockets it has open, 0 if it has ended.

        Shared segments are not counted: the lane keeps them for a minute, within a bound of its own.
        """
        try:
            folder = f"/proc/{self.pid}/fd"
            opened = [os.readlink(f"{folder}/{name}") for name in os.listdir(folder)]
        except OSError:
            return 0
        return sum(not name.startswith("/memfd:telegrad ") for name in opened)
