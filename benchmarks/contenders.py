"""Table of contenders of the RPC benchmark: which library, on which transport."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ..base.allocator import ENVIRONMENT

START = str(Path(__file__).parent / "start.py")
OURS = "telegrad"
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


@dataclass(frozen=True)
class Entry:
    """Contender of the table.

    Attributes:
        name: unique, and what users name it by.
        library: module in ``libraries/``.
        transport: which the library understands.
        environment: which interpreter it needs; empty for Telegrad's own.
        processes: each worker is a process; otherwise rank 0 makes all workers itself.
        quick: part of the short run.
        footprint: takes part in the cases that launch a job of their own.
        launcher: those jobs are started by Telegrad's launcher.
        mpi: all jobs are started by ``mpiexec``.
        spins: its idle processes use the processor, so they are stopped while others are measured: PyTorch's transport
            through shared memory has a thread that never sleeps.
    """

    name: str
    library: str
    transport: str = "default"
    environment: str = ""
    processes: bool = True
    quick: bool = False
    footprint: bool = False
    launcher: bool = False
    mpi: bool = False
    spins: bool = False

    def command(self, python: str, workers: int, alone: bool = False) -> list[str]:
        """Return the command that starts a job of it; ``alone`` for a case that launches its own."""
        size = ["--transport", self.transport, "--workers", str(workers)]
        module = "launched" if self.mpi or (self.launcher and alone) else "contender"
        return [python, START, module, self.library, *size, *([] if self.processes else ["--one-process"])]

    @property
    def variables(self) -> Mapping[str, str]:
        """Return its environment variables: as many threads as torchrun gives, and what Telegrad's launcher sets."""
        return {**ONE_THREAD, **(ENVIRONMENT if self.library == "telegrad" else {})}


CONTENDERS = (
    Entry(OURS, "telegrad", quick=True, footprint=True, launcher=True),
    Entry("telegrad, in process", "telegrad", "inproc", processes=False),
    Entry("telegrad, Unix", "telegrad", "unix"),
    Entry("telegrad, TCP", "telegrad", "tcp", quick=True),
    Entry("telegrad, TLS", "telegrad", "tls"),
    Entry("telegrad, gRPC", "telegrad", "grpc", quick=True),
    Entry("torch", "torch", environment="torch", quick=True, footprint=True, spins=True),
    Entry("torch, TCP", "torch", "tcp", environment="torch", quick=True, spins=True),
    Entry("rpyc", "rpyc", environment="rpyc", footprint=True),
    Entry("zeromq", "zeromq", environment="zeromq", footprint=True),
    Entry("ray", "ray", environment="ray", processes=False, footprint=True),
    Entry("sockets, Unix", "sockets", "unix"),
    Entry("sockets, TCP", "sockets", "tcp"),
    Entry("MPI", "mpi", mpi=True),
    Entry("two memcpys", "memcpy", processes=False),
)
GUESTS = (Entry(OURS, "guest"), Entry("torch", "torch", environment="torch", spins=True))
