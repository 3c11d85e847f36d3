"""Worker process of a chaos job: ``python -m telegrad.testing.chaos.worker CONFIG``, with JSON for a configuration.

It runs the workload in threads and obeys the runner: each line of JSON on standard input is a command, and is answered
with a line on standard output. It ends when the runner ends.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import random
import resource
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ... import rpc
from ...rpc.extend import Agent, current_agent
from .journal import Journal
from .lane import use_relays
from .troubles import TROUBLES
from .workload import Callee, Station, find_activity, install

PAUSE_SECONDS = 0.05
SETTLE_SECONDS = 20.0
RUNNER_GONE = 70


@dataclass
class Config:
    """Instructions for a worker that starts. ``relays`` holds the port of the relay to each peer, by rank."""

    rank: int
    port: int
    relays: dict[int, int]
    folder: str
    seed: int
    timeout: float
    keepalive: float
    reconnect_timeout: float
    activities: list[str]

    def to_json(self) -> str:
        """Return the configuration as text."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Config:
        """Return the reverse of ``to_json``."""
        config = cls(**json.loads(text))
        config.relays = {int(rank): port for rank, port in config.relays.items()}
        return config


class ChaosWorker:
    """Workload of this process, and the runner's commands: every public method is one."""

    def __init__(self, config: Config) -> None:
        self.agent: Agent = current_agent()
        journal = Journal(Path(config.folder), config.rank)
        self._callee = Callee(journal)
        install(self._callee)
        self.station = Station(self.agent, journal, config.timeout, random.Random(config.seed))
        self._threads = [
            threading.Thread(target=self._repeat, args=(find_activity(name),), name=name, daemon=True)
            for name in config.activities
        ]

    def work(self) -> dict[str, Any]:
        """Start the workload; return how much memory the worker had allocated before, in bytes."""
        before = held_bytes()
        for thread in self._threads:
            thread.start()
        return {"bytes": before}

    def trouble(self, kind: str, seconds: float) -> dict[str, Any]:
        """Make trouble for this process (``TROUBLES``)."""
        return TROUBLES[kind](seconds)

    def view(self) -> dict[str, Any]:
        """Return which workers this one counts as lost, and why its own agent is closed, if it is."""
        lost = {peer.info.id: peer.gone for peer in self.agent.peers if peer.gone}
        return {"lost": lost, "closed": self.agent.closed}

    def greet(self, seconds: float) -> dict[str, Any]:
        """Call every worker that is not lost until each has answered; return those that did not, and why."""
        until = time.monotonic() + seconds
        silent = {}
        for name in set(self.station.members()) - {self.agent.name}:
            while (error := self._greet_one(name)) and time.monotonic() < until and not self.agent.closed:
                time.sleep(PAUSE_SECONDS)
            if error:
                silent[name] = error
        return {"silent": silent}

    def rest(self, seconds: float) -> dict[str, Any]:
        """End the workload; return the activities that did not end."""
        self.station.stopping.set()
        until = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(until - time.monotonic(), 0.0))
        return {"busy": [thread.name for thread in self._threads if thread.is_alive()]}

    def settle(self) -> dict[str, Any]:
        """Drop all references and wait until every table is empty; return what is not, and how much memory is allocated."""
        until = time.monotonic() + SETTLE_SECONDS
        while (rest := self._drop_all()) and time.monotonic() < until:
            time.sleep(PAUSE_SECONDS)
        return {"held": rest, "bytes": held_bytes()}

    def leave(self, seconds: float) -> dict[str, Any]:
        """Shut down gracefully; the process ends after this command."""
        if not self.agent.closed:
            rpc.shutdown(timeout=seconds)
        return {}

    def _drop_all(self) -> dict[str, int]:
        # More than once: a late call may keep a reference, and the timer of a call may hold what is a cycle after that.
        self._callee.kept.clear()
        gc.collect()
        return held_by(self.agent)

    def _greet_one(self, name: str) -> str:
        try:
            rpc.rpc_sync(name, abs, (-1,), timeout=self.station.timeout)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return ""

    def _repeat(self, step: Callable[[Station], None]) -> None:
        while not self.station.stopping.wait(PAUSE_SECONDS) and not self.agent.closed:
            step(self.station)


def held_by(agent: Agent) -> dict[str, int]:
    """Return what is left in the tables of an agent, without what is empty."""
    info = agent.debug_info()
    counts = {name: info[name] for name in ("pending_calls", "serving", "control_unacknowledged", "contexts")}
    return {name: number for name, number in {**counts, **info["references"]}.items() if number}


MALLOC_FIELDS = (
    "arena",
    "ordblks",
    "smblks",
    "hblks",
    "hblkhd",
    "usmblks",
    "fsmblks",
    "uordblks",
    "fordblks",
    "keepcost",
)


class _MallocInfo(ctypes.Structure):
    """glibc's ``struct mallinfo2``."""

    _fields_ = [(name, ctypes.c_size_t) for name in MALLOC_FIELDS]


def held_bytes() -> int:
    """Return how much memory this process has allocated and not freed.

    Its resident size is larger: the C library keeps free memory at the end of each thread's arena, up to
    64 MiB, for which malloc_trim() does nothing. Without ``mallinfo2`` (glibc 2.33) it is the resident size.
    """
    library = ctypes.CDLL(None)
    if not hasattr(library, "mallinfo2"):
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    library.mallinfo2.restype = _MallocInfo
    info = library.mallinfo2()
    return int(info.uordblks + info.hblkhd)


def main() -> None:
    """Join the job, and obey the runner until its command to leave."""
    config = Config.from_json(sys.argv[1])
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # all that is printed goes into the log
    use_relays(config.port, config.relays)
    options = rpc.GrpcRpcBackendOptions(
        rpc_timeout=config.timeout, keepalive=config.keepalive, reconnect_timeout=config.reconnect_timeout
    )
    rpc.init_rpc(f"w{config.rank}", rpc_backend_options=options)
    worker = ChaosWorker(config)
    for line in sys.stdin:
        command = json.loads(line)
        name = command.pop("do")
        answers.write(json.dumps(getattr(worker, name)(**command)) + "\n")
        if name == "leave":
            return
    os._exit(RUNNER_GONE)


if __name__ == "__main__":
    main()
