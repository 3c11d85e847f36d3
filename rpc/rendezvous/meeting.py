"""Rendezvous: workers find one another. The scheme of ``init_method`` chooses the way.

* ``tcp://host:port``: rank 0 is the host.
* ``file:///path``
* ``etcd://host:port/job``
* ``mpi://``: the processes that ``mpiexec`` started.
* ``env://``: the value of ``TELEGRAD_INIT_METHOD``. If that is not set, ``mpi://`` under ``mpiexec``, and otherwise ``tcp://``
  with the environment's ``MASTER_ADDR`` and ``MASTER_PORT``.

Over ``tcp://`` rank 0's agent itself listens at the address of the rendezvous, so a job needs one known port and no other
server. Without a world size the job is a dynamic group, which workers join while it runs, over ``tcp://`` at rank 0
(``dynamic_group.py``), over ``file://`` at all members (``logged_group.py``).

Each rendezvous ends with the same list of worker records on every worker. Or it ends with one error, which names the workers
that did not join, or two that contradict each other.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, parse_qs, urlsplit

from ...base import job_secrets, mpi
from ...base.errors import RendezvousError
from ...base.multiprocessing_children import GUARD, imports_main, is_multiprocessing_child
from ...base.worker_reports import reporter
from ..lanes.addresses import (
    can_listen,
    check_exposure,
    host_of,
    host_towards,
    is_loopback,
    join_address,
    usual_address,
)
from ..options import DEFAULT_INIT_TIMEOUT
from ..security.handshake import SECRET_VARIABLE, Credentials
from .rendezvous import Rendezvous
from .tcp import Admit, RendezvousHost, join

if TYPE_CHECKING:
    from ...proto.rpc_pb2 import WorkerRecord
    from ..lanes.lane import Lane
    from ..security.tls import TlsFiles
    from .log import Log

INIT_METHOD_VARIABLE = "TELEGRAD_INIT_METHOD"
PORT_VARIABLE = "TELEGRAD_PORT"
"""``MASTER_PORT:port``. As long as MASTER_PORT is that, ``env://`` means ``port``, and other libraries can have MASTER_PORT."""
ETCD_PORT = 2379
IN_URL = "the host of init_method="
MOST_RANKS = 1 << 16  # ids of contexts and messages have 16 bits for a rank


class TcpRendezvous(Rendezvous):
    """Rendezvous whose host is rank 0.

    Args:
        address: "host:port".
        argument: names what gave the host, in errors.
        purpose: of the rendezvous: empty for the job of ``init_rpc``.
        served: an agent of this process has come together with others there. Where one still listens, rank 0 joins there like
            the others.
    """

    def __init__(self, address: str, argument: str = IN_URL, purpose: str = "", served: bool = False) -> None:
        self.address = address
        self._argument = argument
        self._purpose = purpose
        self._served = served
        self._host: RendezvousHost | None = None

    def prepare(self, lanes: list[Lane], rank: int, host: str | None, secured: bool) -> str | None:
        check_exposure(self._argument, host_of(self.address), secured)
        if rank != 0 or (self._served and not can_listen(self.address)):
            return self._own_address(host)
        self._host = RendezvousHost.on(lanes, self._purpose)
        return self.address

    def _own_address(self, host: str | None) -> str | None:
        rendezvous = host_of(self.address)
        host = host or (None if is_loopback(rendezvous) else host_towards(self.address, self._argument))
        return host and join_address(host, 0)

    def join(self, me: Credentials, world_size: int, timeout: float, keepalive: float) -> Iterable[WorkerRecord]:
        if self._host is not None:
            return self._host.wait(me.record, world_size, timeout)
        return join(me, self.address, world_size, timeout, keepalive, self._purpose)

    def open_group(self, admit: Admit) -> None:
        assert self._host is not None  # where another agent listens, ``join`` has failed
        self._host.open_group(admit)


class LogRendezvous(Rendezvous):
    """Rendezvous in a log, in which every worker writes its record.

    Args:
        make: makes the log; gets the seconds that the rendezvous may take.
        address: "host:port" of the server that keeps the log; ``None`` for a file.
        purpose: of the rendezvous: empty for the job of ``init_rpc``.
    """

    def __init__(self, make: Callable[[float], Log], address: str | None = None, purpose: str = "") -> None:
        self._make = make
        self._address = address
        self._purpose = purpose

    def prepare(self, lanes: list[Lane], rank: int, host: str | None, secured: bool) -> str | None:
        # Without a host, others reach this worker at the address from which this machine reaches the log.
        if host is None and self._address is not None and not is_loopback(host_of(self._address)):
            host = host_towards(self._address, IN_URL)
        return host and join_address(host, 0)

    def join(self, me: Credentials, world_size: int, timeout: float, keepalive: float) -> Iterable[WorkerRecord]:
        from .log import join_in_log  # here, as for the logs below: most jobs come together over TCP

        return join_in_log(self._make(timeout), me, world_size, timeout, self._purpose)


@dataclass
class Plan:
    """Rendezvous to join, the rank and world size to join with, and the credentials that the rendezvous gives this worker.

    Attributes:
        places: number of ranks, if lost workers of the job are replaced; else 0.
        secret: the job's secret; None for the environment's or the user's.
        tls: certificate files; None for those of the worker's options or launcher.
    """

    rendezvous: Rendezvous
    rank: int
    world_size: int
    secret: bytes | None = None
    tls: TlsFiles | None = None
    places: int = 0


def plan_rendezvous(
    init_method: str,
    rank: int,
    world_size: int | None,
    timeout: float = DEFAULT_INIT_TIMEOUT,
    purpose: str = "",
    served: Collection[str] = (),
    replaceable: bool = False,
) -> Plan:
    """Return the rendezvous that ``init_method`` names.

    Rank and world size come from the arguments, else from the URL, else from the environment.

    Args:
        init_method: URL; its scheme is ``tcp``, ``file``, ``etcd``, ``mpi`` or ``env``.
        rank: this worker's rank; -1 takes it from the URL or ``RANK``, and under ``mpiexec`` from MPI.
        world_size: number of workers; ``None`` takes it from the URL or ``WORLD_SIZE``, and under ``mpiexec`` from MPI. 0
            means a dynamic group, and so does a world size that is given nowhere.
        timeout: seconds to wait for other processes, where that is necessary to make a plan.
        purpose: of the rendezvous: empty for the job of ``init_rpc``. Over MPI all purposes are the same.
        replaceable: lost workers of the job are replaced.
        served: addresses at which open agents of this process have come together with others.

    Raises:
        RendezvousError: something is missing or contradictory.
        TypeError: rank or world size is no whole number, or ``init_method`` is no text.
    """
    if not isinstance(init_method, str):
        raise TypeError(f"init_method must be a text such as 'tcp://127.0.0.1:4711'; you gave {init_method!r}")
    for argument, given in (("rank", rank), ("world_size", -1 if world_size is None else world_size)):
        if not isinstance(given, int):
            raise TypeError(f"{argument} must be a whole number; you gave {given!r}")
    if imports_main():
        raise RendezvousError(
            f"this process came to init_rpc while it imported the script that has started it: {GUARD}"
        )
    url = _parsed(init_method)
    if url.scheme == "env":
        _check_not_a_workers_child()
        url = _parsed(init_method := os.environ.get(INIT_METHOD_VARIABLE) or init_method)
    query = {key: values[-1] for key, values in parse_qs(url.query).items()}
    if url.scheme == "mpi" or (url.scheme == "env" and "MASTER_ADDR" not in os.environ and mpi.started_by_mpi()):
        return _mpi_plan(timeout, rank, world_size)
    rank = rank if rank >= 0 else _number("rank", query.get("rank"), "RANK")
    if world_size is None or world_size < 0:
        world_size = _number(
            "world_size", query.get("world_size", "0" if "WORLD_SIZE" not in os.environ else None), "WORLD_SIZE"
        )
    _check_numbers(rank, world_size or MOST_RANKS)
    rendezvous = _rendezvous(init_method, url, purpose, served)
    places = world_size if replaceable and url.scheme == "file" else 0
    if world_size == 0 or places:
        rendezvous = _dynamic(rendezvous, url, init_method, places)
    return Plan(rendezvous, rank, world_size, _own_secret(rendezvous), places=places)


def _parsed(init_method: str) -> SplitResult:
    try:
        return urlsplit(init_method)
    except ValueError as error:
        raise RendezvousError(f"init_method={init_method!r} is no URL: {error}") from error


def _mpi_plan(timeout: float, rank: int, world_size: int | None) -> Plan:
    from .mpi import MpiRendezvous  # here, because few jobs come together by MPI

    rendezvous = MpiRendezvous(timeout)
    rank = rank if rank >= 0 else rendezvous.rank
    size = rendezvous.world_size if world_size is None or world_size < 0 else world_size
    _check_numbers(rank, size)
    secret = None if SECRET_VARIABLE in os.environ else rendezvous.secret
    return Plan(rendezvous, rank, size, secret, rendezvous.tls())


def _check_numbers(rank: int, world_size: int) -> None:
    if world_size < 1 or not 0 <= rank < world_size:
        raise RendezvousError(
            f"rank={rank} with world_size={world_size} is impossible; ranks go from 0 to world_size - 1"
        )
    if world_size > MOST_RANKS:
        raise RendezvousError(f"world_size={world_size} is too many workers; a job has at most {MOST_RANKS}")


def _dynamic(rendezvous: Rendezvous, url: SplitResult, init_method: str, places: int) -> Rendezvous:
    """Return the rendezvous of a group in the same place, which workers join while the job runs."""
    if url.scheme == "file":  # the lines of a file stay as long as the group; etcd deletes them before
        from .entering import GroupRendezvous
        from .file import FileLog

        return GroupRendezvous(partial(FileLog, url.path), places)
    if isinstance(rendezvous, TcpRendezvous):
        return rendezvous
    raise RendezvousError(
        f"world_size is missing: pass world_size= to init_rpc, or set WORLD_SIZE. Without one workers join and leave while "
        f"the job runs, which needs init_method='tcp://host:port', 'file:///path' or 'env://'; you gave {init_method!r}"
    )


def _own_secret(rendezvous: Rendezvous) -> bytes | None:
    """Return the secret of a job whose workers this process has started; ``None`` if it has not."""
    if SECRET_VARIABLE in os.environ:
        return None
    port = int(rendezvous.address.rpartition(":")[2]) if rendezvous.address else None
    secret = job_secrets.secret_of(port)
    return None if secret is None else secret.encode()


def _rendezvous(init_method: str, url: SplitResult, purpose: str, served: Collection[str]) -> Rendezvous:
    if url.scheme == "env" or (url.scheme == "tcp" and ":" in url.netloc):
        in_environment = url.scheme == "env"
        given = f"{_variable('MASTER_ADDR')}:{_port_in_environment()}" if in_environment else url.netloc
        address = usual_address(given)
        return TcpRendezvous(address, "MASTER_ADDR" if in_environment else IN_URL, purpose, address in served)
    if url.scheme == "file" and url.path:
        from .file import FileLog

        return LogRendezvous(partial(FileLog, url.path), purpose=purpose)
    if url.scheme in ("etcd", "etcds") and url.netloc and url.path.strip("/"):
        return _in_etcd(url, purpose)
    raise RendezvousError(
        f"init_method={init_method!r} is none of env://, tcp://host:port, file:///path, etcd://host:port/job and mpi://"
    )


def _port_in_environment() -> str:
    given, own = _variable("MASTER_PORT"), os.environ.get(PORT_VARIABLE, "")
    return own.partition(":")[2] if own.startswith(f"{given}:") else given


def _in_etcd(url: SplitResult, purpose: str) -> LogRendezvous:
    from .etcd import EtcdLog  # here, because it loads an HTTP client that no other rendezvous needs

    servers = [usual_address(_with_port(server)) for server in url.netloc.split(",")]
    name, tls = url.path.strip("/"), url.scheme == "etcds"
    return LogRendezvous(lambda timeout: EtcdLog(servers, name, timeout, tls), servers[0], purpose)


def _with_port(server: str) -> str:
    return server if server.rpartition(":")[2].isdecimal() and not server.endswith("]") else f"{server}:{ETCD_PORT}"


def _check_not_a_workers_child() -> None:
    """Refuse workers that a script starts itself under ``telegrad run``: they have inherited one worker's rank."""
    worker = os.environ.get("TELEGRAD_WORKER")
    if worker is not None and is_multiprocessing_child() and reporter() is None:
        raise RendezvousError(
            f"a process that was started with multiprocessing by the worker {worker!r} cannot join its job: RANK, MASTER_PORT "
            f"and so on in the environment are that worker's. If the script starts its own workers, run it with `python` and "
            f"not with `telegrad run`; if not, let `telegrad run -n` start as many as you need"
        )


def _variable(name: str) -> str:
    value = os.environ.get(name)
    if not value:
        raise RendezvousError(
            f"the environment variable {name} is not set, which init_method='env://' needs; start workers with "
            f"`telegrad run`, or set it, or give init_method='tcp://127.0.0.1:PORT'"
        )
    return value


def _number(argument: str, given: str | None, variable: str) -> int:
    text = given if given is not None else os.environ.get(variable)
    if text is None:
        raise RendezvousError(
            f"{argument} is missing: pass {argument}= to init_rpc, or set {variable} (`telegrad run` does)"
        )
    try:
        return int(text)
    except ValueError:
        raise RendezvousError(f"{argument} must be a number; {variable} or the URL says {text!r}") from None
