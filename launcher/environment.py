"""What a worker finds in its environment, and the port at which its job meets."""

import os
import secrets
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager

from ..core import allocator, job_secrets

LOOPBACK = "127.0.0.1"
WORKER_VARIABLE = "TELEGRAD_WORKER"
SECRET_VARIABLE = "TELEGRAD_SECRET"


def reserve_port() -> socket.socket:
    """Binds a free port of the loopback without listening on it; the port is the job's until the socket is closed.

    Nobody else is given the port meanwhile, and rank 0 can still listen on it: Linux lets a second socket bind where
    the first does not listen and both set SO_REUSEADDR, which gRPC and ``socket.create_server`` do.
    """
    reserved = socket.socket()
    try:
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserved.bind((LOOPBACK, 0))
    except BaseException:
        reserved.close()
        raise
    return reserved


def job_environment(world_size: int, port: int) -> dict[str, str]:
    """What all workers of a job share: its size, where they meet, and the secret by which they know one another."""
    return {
        "WORLD_SIZE": str(world_size),
        "MASTER_ADDR": LOOPBACK,
        "MASTER_PORT": str(port),
        SECRET_VARIABLE: secrets.token_hex(32),
    }


def rank_environment(rank: int, name: str) -> dict[str, str]:
    """What tells a worker from the others."""
    return {"RANK": str(rank), "LOCAL_RANK": str(rank), WORKER_VARIABLE: name}


def helpful_defaults(world_size: int) -> dict[str, str]:
    """What a worker gets unless the user has set it: a stack on a crash, a fair share of the cores for BLAS, a quiet
    gRPC, an allocator that keeps freed memory.

    What gRPC would print about a worker that leaves, or a port that is taken, reaches the user as an error of ours.
    """
    threads = max(1, len(os.sched_getaffinity(0)) // world_size)
    settings = {"PYTHONFAULTHANDLER": "1", "OMP_NUM_THREADS": str(threads), "GRPC_VERBOSITY": "NONE"}
    if not any(name.startswith("MALLOC_") for name in os.environ):
        settings.update(allocator.ENVIRONMENT)
    return settings


_changing_environment = threading.Lock()


def own_environment() -> dict[str, str]:
    """Return this process's environment, without what another thread has set for a moment to start a worker."""
    with _changing_environment:
        return dict(os.environ)


@contextmanager
def _environment(forced: Mapping[str, str], defaults: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """This process's environment has ``forced``, and ``defaults`` where it has nothing, for a child to inherit; yields these.

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
    """The environment of a job's processes that inherit this one's. Where the job meets, and its secret, are left as the
    user has set them."""

    def __init__(self, world_size: int, port: int) -> None:
        self._defaults = {**helpful_defaults(world_size), **job_environment(world_size, port)}
        own = own_environment()
        given = own.get("MASTER_PORT") or str(port)
        if not given.isdecimal():
            raise ValueError(f"the environment variable MASTER_PORT must be a port's number, you set {given!r}")
        self._port = int(given)
        self._secret = None if SECRET_VARIABLE in own else self._defaults[SECRET_VARIABLE]  # None: the user's own
        self.init_method = f"tcp://{LOOPBACK}:{self._port}"

    @contextmanager
    def joinable_by_parent(self) -> Iterator[None]:
        """This process can join the job, although it has not the job's secret in its environment."""
        if self._secret is None:
            yield
            return
        job_secrets.remember(self._port, self._secret)
        try:
            yield
        finally:
            job_secrets.forget(self._port, self._secret)

    def of(self, rank: int, name: str) -> AbstractContextManager[dict[str, str]]:
        """This process's environment is that of a worker, as long as one is started; yields what it adds."""
        return _environment(rank_environment(rank, name), self._defaults)
