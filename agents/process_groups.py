"""``init_process_group``: make the default process group, over MPI or over an agent of its own."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial

from ..base.errors import CollectiveError
from ..base.mpi import started_by_mpi
from ..base.worker_reports import reporter
from ..collective.extend import (
    GROUP_TIMEOUT,
    AgentGroup,
    MpiGroup,
    ProcessGroup,
    mpi,
    registry,
    seconds,
    serve_groups,
)
from ..rpc.extend import Agent, GrpcRpcBackendOptions, Plan, Shutdown, Vacancies, plan_rendezvous, rpc_agents, shut_down
from .late_parts import add_observer
from .starting import meeting_places, open_agent

BACKENDS = {"mpi": "mpi", "rpc": "rpc", "gloo": "rpc"}


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | float | None = None,
    world_size: int = -1,
    rank: int = -1,
) -> None:
    """Make the default process group (``torch.distributed.init_process_group``). All its processes call this.

    It is independent of ``init_rpc``: either can be called first, and end first. A process group may have fewer processes than
    the job of ``init_rpc`` has workers, with other ranks.

    Args:
        backend: ``"mpi"``, in processes that ``mpiexec`` started; ``"rpc"``, over the lanes of agents that carry the group
            alone; ``"gloo"`` means the same. ``None`` chooses by whether ``mpiexec`` started this process.
        init_method: where the processes find one another, as for ``init_rpc``, at the same place or at another; ``None`` for
            the place of ``init_rpc``, and for ``env://`` before it.
        timeout: of collectives: a timedelta, or seconds; ``None`` for 30 minutes.
        world_size: number of processes; -1 for that of ``init_rpc``, and before it for that of the environment.
        rank: this process's rank; -1 for that of ``init_rpc``, and before it for that of the environment.

    Raises:
        CollectiveError: there is a default group already, there is no world size, or MPI is not installed.
        RendezvousError: the processes did not come together.
        ValueError: there is no such backend.
    """
    limit = seconds(timeout, GROUP_TIMEOUT.total_seconds())
    chosen = BACKENDS.get(backend or _usual_backend())
    if chosen is None:
        raise ValueError(f"backend must be one of {sorted(BACKENDS)}, or None; you gave {backend!r}")
    registry.check_closed()
    if chosen == "mpi":
        _open_mpi(limit)
    else:
        _open_rpc(limit, init_method, world_size, rank)


def _usual_backend() -> str:
    return "mpi" if started_by_mpi() and not rpc_agents() else "rpc"


def _open_rpc(timeout: float, init_method: str | None, world_size: int, rank: int) -> None:
    worker = next(iter(rpc_agents()), None)
    options = worker.options if worker is not None else GrpcRpcBackendOptions()
    options = options if init_method is None else replace(options, init_method=init_method)
    plan = _plan(options, worker, world_size, rank)
    name = _launched_name() or f"rank{plan.rank}" if worker is None else worker.name
    agent = open_agent(name, plan, options, add_group_parts, private=True)
    registry.open(partial(AgentGroup, agent), range(plan.world_size), timeout, partial(shut_down, agent, True, 0.0))


def _launched_name() -> str | None:
    """Return the name that a launcher has given this process; None without one."""
    return os.environ.get("TELEGRAD_WORKER") if reporter() is not None else None


def add_group_parts(agent: Agent) -> None:
    """Add the parts of a process group's agent: it carries collectives, and answers commands such as ``telegrad why``."""
    agent.add_part(Vacancies(agent))
    agent.add_part(Shutdown(agent))
    add_observer(agent)
    serve_groups(agent)


def _plan(options: GrpcRpcBackendOptions, worker: Agent | None, world_size: int, rank: int) -> Plan:
    """Return the rendezvous of a group, with the rank, world size and secret of this process's worker where none is given."""
    if worker is not None and world_size < 0:
        if worker.state.dynamic and not worker.state.places:
            raise CollectiveError(
                f"worker {worker.name!r} is in a dynamic group, whose workers come and go, and a process group needs a world "
                f"size; give init_process_group world_size= and rank="
            )
        world_size, rank = worker.state.places or len(worker.peers), worker.rank if rank < 0 else rank
    plan = plan_rendezvous(
        options.init_method,
        rank,
        None if world_size < 0 else world_size,
        options.init_timeout,
        purpose="process group",
        served=meeting_places(),
    )
    if plan.world_size == 0:
        raise CollectiveError("a process group needs a world size; give init_process_group world_size= and rank=")
    if worker is not None and plan.secret is None:
        plan.secret = worker.credentials.secret
    return plan


def _open_mpi(timeout: float) -> None:
    world = mpi().COMM_WORLD

    def make(name: str, ranks: Sequence[int], seconds: float) -> ProcessGroup:
        communicator = world.Create_group(world.group.Incl(list(ranks)))
        return MpiGroup(communicator, name, ranks, world.rank, seconds)

    registry.open(make, range(world.size), timeout, _keep)


def _keep() -> None:
    """Leave MPI as it is."""
