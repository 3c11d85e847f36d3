"""Environment variables of a job's workers, and the port of their rendezvous."""

import itertools
import os
import secrets
import socket
import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext

from ..core import allocator, job_secrets
from ..core.job_records import RESTART_COUNT_VARIABLE
from .credentials import CredentialFolders
from .nodes.assignment import Placement
from .restarts.rules import RestartPolicy, RestartRules

LOOPBACK_ADDRESS = "127.0.0.1"
WORKER_VARIABLE = "TELEGRAD_WORKER"
SECRET_VARIABLE = "TELEGRAD_SECRET"
RESTART_VARIABLE = "TELEGRAD_RESTART"
"""Restarts of this job's workers: ``one`` or ``rest`` if some are started again while others go on, else ``all``."""
INIT_METHOD_VARIABLE = "TELEGRAD_INIT_METHOD"


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


def next_rendezvous(init_method: str, round_number: int) -> str:
    """Return the address of a rendezvous for a further round of a job whose workers are all started again.

    In a file and in etcd a name is for one rendezvous; at a port rank 0 listens anew.

    Args:
        init_method: that of the first round.
        round_number: 0 for the first round.
    """
    named = init_method.startswith(("file://", "etcd://", "etcds://"))
    return f"{init_method}-restart{round_number}" if named and round_number else init_method


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


def shared_cores(workers: int) -> list[set[int]]:
    """Return the cores of each worker of this machine: equal shares; none if there are fewer cores than workers."""
    cores = sorted(os.sched_getaffinity(0))
    each, more = divmod(len(cores), workers)
    if each == 0:
        return []
    starts = [number * each + min(number, more) for number in range(workers + 1)]
    return [set(cores[start:end]) for start, end in itertools.pairwise(starts)]


@contextmanager
def on_cores(cores: Collection[int]) -> Iterator[None]:
    """Let processes that this thread starts in the block use these cores only; all that it may use itself, if empty."""
    before = os.sched_getaffinity(0)
    if cores:
        os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


_changing_environment = threading.Lock()


def own_environment() -> dict[str, str]:
    """Return this process's environment, without what another thread has set for a moment to start a worker."""
    with _changing_environment:
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


@contextmanager
def _set_environment(forced: Mapping[str, str], defaults: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Set variables of this process for a child to inherit, ``defaults`` only where it has none; yield those that were set.

    A child cannot set all of them for itself: by the time it runs a line of ours, NumPy has read its own. Where it does not
    inherit them (multiprocessing's fork server inherits those of the first child), it sets the others.
    """
    with _changing_environment:
        changed = {**{name: value for name, value in defaults.items() if name not in os.environ}, **forced}
        before = {name: os.environ.get(name) for name in changed}
        os.environ.update(changed)
        try:
            yield changed
        finally:
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value


class SpawnEnvironment:
    """Environment of a job whose processes inherit this one's; the user's own rendezvous and secret stay.

    Args:
        world_size: how many workers there are.
        port: of the rendezvous, unless the user has set MASTER_PORT.
        folders: for the workers' credentials.

    Raises:
        ValueError: MASTER_PORT is not a number.
    """

    def __init__(self, world_size: int, port: int, folders: CredentialFolders) -> None:
        self._defaults = {**helpful_defaults(world_size), **rendezvous_environment(world_size, port)}
        self._folders = folders
        self._port = given_port() or port
        self.init_method = f"tcp://{LOOPBACK_ADDRESS}:{self._port}"

    def joinable_by_parent(self) -> AbstractContextManager[None]:
        """Let this process join the job, although the job's secret is not in its environment."""
        if self._has_secret():
            return nullcontext()
        return job_secrets.remembered(self._port, self._folders.secret)

    def of(self, rank: int, name: str) -> AbstractContextManager[dict[str, str]]:
        """Make this process's environment that of a worker, as long as one is started; yields what it adds."""
        credentials = {} if self._has_secret() else self._folders.add(name)
        return _set_environment({**rank_environment(rank, name), **credentials}, self._defaults)

    @staticmethod
    def _has_secret() -> bool:
        return SECRET_VARIABLE in own_environment()
