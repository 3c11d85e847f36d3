"""Environment variables of a job's workers, and the port of their rendezvous."""

import os
import secrets
import socket
import threading
from collections.abc import Mapping
from contextlib import ExitStack, closing
from pathlib import Path

from ..base import allocator
from ..base.job_records import EVENT_FILES, LOG_VARIABLE, RESTART_COUNT_VARIABLE
from .credentials import CredentialFolders
from .engines.job_processes import JOB_MARK
from .nodes.assignment import Placement
from .nodes.part import JobPart
from .restarts.history import RestartHistory
from .restarts.rules import RestartPolicy, RestartRules
from .spec import JobSpec, role_of
from .worker_files import EventsFile, ReportFile

LOOPBACK_ADDRESS = "127.0.0.1"
WORKER_VARIABLE = "TELEGRAD_WORKER"
SECRET_VARIABLE = "TELEGRAD_SECRET"
RESTART_VARIABLE = "TELEGRAD_RESTART"
"""Restarts of this job's workers: ``one`` or ``rest`` if some are started again while others go on, else ``all``."""
INIT_METHOD_VARIABLE = "TELEGRAD_INIT_METHOD"
PORT_VARIABLE = "TELEGRAD_PORT"
"""``MASTER_PORT:port``: the port of ``env://``, so that a process group of PyTorch in the same workers can have MASTER_PORT."""
RENDEZVOUS_FILE = "rendezvous"  # beside the folders of the workers' credentials


def reserve_port(host: str = LOOPBACK_ADDRESS) -> socket.socket:
    """Bind a free port of this machine without listening on it; the port is reserved until the socket is closed.

    Linux gives it meanwhile to no other socket that binds port 0 of an IPv4, IPv4-mapped or dual-stack address, listening or
    connecting. Rank 0 can still listen on it: Linux lets a second socket bind where the first does not listen and both set
    SO_REUSEADDR, which gRPC and ``socket.create_server`` do.

    Args:
        host: name or address of this machine at which rank 0 is to listen.
    """
    family, _, _, _, address = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0]
    reserved = socket.socket(family)
    try:
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserved.bind(address)
    except BaseException:
        reserved.close()
        raise
    return reserved


def rendezvous_environment(world_size: int, port: int) -> dict[str, str]:
    """Return the variables that all workers of a job share: its size, and its rendezvous."""
    return {"WORLD_SIZE": str(world_size), "MASTER_ADDR": LOOPBACK_ADDRESS, "MASTER_PORT": str(port)}


def placement_environment(placement: Placement, listen_host: str | None) -> dict[str, str]:
    """Return the variables that all workers of one node of a job share.

    Args:
        placement: the node's part of the job.
        listen_host: address to listen at; None for the one at which others reach the node.
    """
    return {
        "WORLD_SIZE": str(placement.world_size),
        "LOCAL_WORLD_SIZE": str(placement.local_size or len(placement.workers)),
        "GROUP_RANK": str(placement.node),
        "GROUP_WORLD_SIZE": str(placement.nodes),
        "MASTER_ADDR": placement.master_host,
        "MASTER_PORT": str(placement.master_port),
        "TELEGRAD_HOST": placement.host,
        **({"TELEGRAD_LISTEN_HOST": listen_host} if listen_host else {}),
    }


def job_environment(world_size: int, port: int) -> dict[str, str]:
    """Return the variables of a job that no launcher starts: its size, its rendezvous, and a new secret."""
    return {**rendezvous_environment(world_size, port), SECRET_VARIABLE: secrets.token_hex(32)}


def rank_environment(rank: int, name: str, placement: Placement | None = None) -> dict[str, str]:
    """Return the variables of one worker.

    Args:
        rank: its number among its launcher's workers.
        name: its name.
        placement: its launcher's part of a job on several machines; None if that launcher runs all of it.
    """
    first, local = (placement.first_rank, placement.local_rank) if placement else (0, 0)
    return {"RANK": str(first + rank), "LOCAL_RANK": str(local + rank), WORKER_VARIABLE: name}


def restart_environment(rules: RestartRules, count: int) -> dict[str, str]:
    """Return the variables that tell a worker of restarts, also by torchrun's names; none if its job has none.

    Args:
        rules: of the job.
        count: how often the worker has been started again.
    """
    if rules.widest is RestartPolicy.NEVER:
        return {}
    most = {} if rules.most is None else {"TORCHELASTIC_MAX_RESTARTS": str(rules.most)}
    counts = dict.fromkeys((RESTART_COUNT_VARIABLE, "TORCHELASTIC_RESTART_COUNT"), str(count))
    return {RESTART_VARIABLE: rules.widest.value, **counts, **most}


def job_mark(job: str) -> dict[str, str]:
    """Return the variable that marks a job's processes (``engines/job_processes.py``).

    A job inside a job's worker carries both marks.
    """
    outer = os.environ.get(JOB_MARK)
    return {JOB_MARK: f"{outer}/{job}" if outer else job}


def option_variables(spec: JobSpec, worker: str) -> dict[str, str]:
    """Return the variables that the options of a job set for a worker; those for its role come last."""
    chosen = sorted((each for each in spec.variables if each[0] in ("", role_of(worker))), key=lambda each: each[0])
    events = {EVENT_FILES: os.path.abspath(spec.tensorboard)} if spec.tensorboard else {}
    return {name: value for _, name, value in chosen} | events


def helpful_defaults(world_size: int) -> dict[str, str]:
    """Return variables that a worker gets unless the user has set them.

    They make it print a traceback when it crashes, give BLAS a fair share of the cores, let the allocator keep freed memory,
    and keep gRPC quiet: its errors reach the user as Telegrad's.
    """
    threads = max(1, len(os.sched_getaffinity(0)) // world_size)
    settings = {"PYTHONFAULTHANDLER": "1", "OMP_NUM_THREADS": str(threads), "GRPC_VERBOSITY": "NONE"}
    if not any(name.startswith("MALLOC_") for name in own_environment()):
        settings.update(allocator.ENVIRONMENT)
    return settings


changing_environment = threading.Lock()
"""Held by a thread that sets variables of this process for a moment, for a child to inherit."""


def own_environment() -> dict[str, str]:
    """Return this process's environment, without what another thread has set for a moment to start a worker."""
    with changing_environment:
        return dict(os.environ)


def given_port() -> int | None:
    """Return the port that the user has set with MASTER_PORT, if any.

    Raises:
        ValueError: it is not a number.
    """
    given = own_environment().get("MASTER_PORT")
    if given and not given.isdecimal():
        raise ValueError(f"the environment variable MASTER_PORT must be a port's number, you set {given!r}")
    return int(given) if given else None


class WorkerPlace:
    """Place of a job's workers in one round: what each finds in its environment, and the files that are named there.

    It must be closed.

    Args:
        spec: the job.
        log_dir: folder of the logs.
        history: of the job's restarts.
        environment: variables that all have in all rounds.
        reports: file of their reports.
        node: part of a job on several machines; None if this launcher runs all of it.

    Attributes:
        first_rank: rank in the job of the first worker.
        credentials: folders of the workers' credentials.
        events: memory for the workers' last events.
    """

    def __init__(
        self,
        spec: JobSpec,
        log_dir: Path,
        history: RestartHistory,
        environment: Mapping[str, str],
        reports: ReportFile,
        node: JobPart | None = None,
    ) -> None:
        self.first_rank = node.placement.first_rank if node else 0
        self._spec = spec
        self._log_dir = log_dir
        self._history = history
        self._environment = environment
        self._reports = reports
        self._node = node
        self._resources = ExitStack()
        if node:
            self._rendezvous = placement_environment(node.placement, node.listen_host)
        else:
            ports = [self._resources.enter_context(reserve_port()).getsockname()[1] for _ in range(2)]
            self._rendezvous = rendezvous_environment(0 if spec.elastic else len(spec.workers), ports[0])
            self._rendezvous[PORT_VARIABLE] = f"{ports[0]}:{ports[1]}"
        self.credentials = self._resources.enter_context(closing(node.folders if node else CredentialFolders()))
        self.events = self._resources.enter_context(closing(EventsFile(len(spec.workers))))

    def log(self, name: str) -> Path:
        """Return the path of a worker's log."""
        return self._log_dir / f"{name}.log"

    def variables(self, rank: int, name: str) -> dict[str, str]:
        """Return the variables of a worker that is about to start, and write its credentials.

        Raises:
            OSError: they cannot be written.
        """
        own = option_variables(self._spec, name)
        return {
            **self._rendezvous,
            **own,
            LOG_VARIABLE: os.path.abspath(self.log(name)),
            **self._init_method(own),
            **restart_environment(self._spec.restarts, self._history.counts[rank]),
            **rank_environment(rank, name, self._node.placement if self._node else None),
            **self.credentials.add(name, self._node.files(rank) if self._node else {}),
            **self._reports.variable(rank),
            **self.events.variable(rank),
        }

    def close(self) -> None:
        """Remove the credentials, and free the port and the memory."""
        self._resources.close()

    def _init_method(self, own: Mapping[str, str]) -> dict[str, str]:
        """Return where the workers of this round of the job find one another, if not at the port.

        In a file and in etcd a name is for one rendezvous; at a port rank 0 listens anew. Where workers are started while
        others go on, it is a file: no worker has to outlive the others for it.
        """
        number, restarts = self._history.rounds, self._spec.restarts
        given = own.get(INIT_METHOD_VARIABLE) or self._environment.get(INIT_METHOD_VARIABLE)
        if given:
            named = given.startswith(("file://", "etcd://", "etcds://"))
            return {INIT_METHOD_VARIABLE: f"{given}-restart{number}" if named and number else given}
        if (restarts.widest.single or self._spec.elastic) and self._node is None:
            return {INIT_METHOD_VARIABLE: f"file://{self.credentials.root}/{RENDEZVOUS_FILE}{number}"}
        return {}
