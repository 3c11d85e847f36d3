"""Rendezvous over MPI, for workers that ``mpiexec`` started: MPI knows every rank, and carries the records.

MPI also carries what a launcher would give each worker: the job's secret and, if the ranks are on several hosts, a
certificate. Every process that can send in the job's MPI communicator counts as a worker of the job, and what MPI carries is
as safe as MPI is. Keys and certificates are in memory only (memfd): they are gone when the process ends.
"""

from __future__ import annotations

import logging
import os
import secrets
import socket
import time
from functools import cache
from typing import TYPE_CHECKING

from ...base import mpi
from ...base.errors import RendezvousError
from ...proto.rpc_pb2 import WorkerRecord
from ..lanes.addresses import host_towards, join_address
from ..security.handshake import PROTOCOL, Credentials
from ..security.tls import TlsFiles
from ..threads.notices import WaitNotices
from .members import MemberList
from .rendezvous import Rendezvous

if TYPE_CHECKING:
    from ..lanes.lane import Lane

logger = logging.getLogger("telegrad.rpc")
MPI_POLL_SECONDS = 0.001
TELLING = 2  # ranks that say for what they wait: one of them may be what the others wait for


class MpiRendezvous(Rendezvous):
    """Rendezvous of the processes of ``MPI.COMM_WORLD``. All must make this object, at about the same time.

    Args:
        timeout: seconds to wait for all.

    Attributes:
        rank: rank of this process in MPI.
        world_size: number of processes.
        secret: the job's secret, a random text of rank 0.

    Raises:
        RendezvousError: MPI is not installed, or not all processes came.
    """

    def __init__(self, timeout: float) -> None:
        try:
            self._world = mpi.load().COMM_WORLD
        except ImportError as error:
            raise RendezvousError(f"mpiexec started this process, and {error}; or set MASTER_ADDR") from error
        mpi.end_all_on_failure()
        self.rank: int = self._world.rank
        self.world_size: int = self._world.size
        self._wait_for_all(timeout)
        hosts = self._world.allgather((_network(), _host_name()))
        self._others = [name for network, name in hosts if network != hosts[self.rank][0]]
        self.secret: bytes = self._world.bcast(secrets.token_hex(32).encode() if self.rank == 0 else None)

    def tls(self) -> TlsFiles | None:
        """Return certificate files of this worker; ``None`` if all workers are on one host. All processes must call it."""
        return _certified() if any(self._world.allgather(bool(self._others))) else None

    def prepare(self, lanes: list[Lane], rank: int, host: str | None, secured: bool) -> str | None:
        if host is None and self._others:
            host = host_towards(f"{self._others[0]}:1")
        return host and join_address(host, 0)

    def join(self, me: Credentials, world_size: int, timeout: float, keepalive: float) -> list[WorkerRecord]:
        self._wait_for_all(timeout)
        members = MemberList(self.world_size)
        told = self._world.allgather((PROTOCOL, me.record.SerializeToString(), world_size))
        for rank, (protocol, *_) in enumerate(told):
            if protocol != PROTOCOL:
                raise RendezvousError(
                    f"rank {rank} speaks protocol {protocol}, this worker {PROTOCOL}; use one version of telegrad"
                )
        for _, record, size in told:
            members.join(WorkerRecord.FromString(record), size)
        return members.workers()

    def _wait_for_all(self, timeout: float) -> None:
        deadline, notices = time.monotonic() + timeout, WaitNotices(time.monotonic())
        request = self._world.Ibarrier()
        while not request.Test():
            if notices.due(time.monotonic()) and self.rank < TELLING:
                logger.warning(
                    "rank %d of mpiexec waits for all %d processes to call init_rpc", self.rank, self.world_size
                )
            if time.monotonic() > deadline:
                raise RendezvousError(
                    f"not all {self.world_size} processes of mpiexec called init_rpc within {timeout:g} s; MPI does not say "
                    f"which: let each call it, or start them with `telegrad run`, which names those that are missing"
                )
            time.sleep(MPI_POLL_SECONDS)


@cache  # the files exist for as long as the process
def _certified() -> TlsFiles:
    """Make a key, let rank 0 certify it, and return the files."""
    from ..certificates import Authority, new_key

    world = mpi.load().COMM_WORLD
    key = new_key()
    publics = world.gather(key.public)
    given = None
    if publics is not None:
        authority = Authority(f"job-{secrets.token_hex(8)}.telegrad")
        given = [
            (authority.certify(f"rank{rank}", public), authority.certificate) for rank, public in enumerate(publics)
        ]
    certificate, ca = world.scatter(given)
    return TlsFiles(_in_memory(certificate), _in_memory(key.key), _in_memory(ca))


def _network() -> tuple[str, int]:
    """Return an identifier of this process's network. Two processes with the same one have the same loopback."""
    with open("/proc/sys/kernel/random/boot_id") as file:
        return file.read().strip(), os.stat("/proc/self/ns/net").st_ino


def _host_name() -> str:
    """Return the name by which ``mpiexec`` knows this host, else its own."""
    return os.environ.get("PMI_HOSTNAME") or socket.gethostname()


def _in_memory(content: bytes) -> str:
    """Return the path of a file that exists for as long as this process, and that only its user can read."""
    descriptor = os.memfd_create("telegrad-credentials", os.MFD_CLOEXEC)
    os.fchmod(descriptor, 0o600)
    os.write(descriptor, content)
    return f"/proc/self/fd/{descriptor}"
