"""``init_process_group``: make the default process group, over MPI or over this process's agent."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial

from ..collective.extend import DEFAULT_TIMEOUT, AgentGroup, MpiGroup, ProcessGroup, mpi, registry, seconds
from ..core.errors import CollectiveError
from ..core.mpi import started_by_mpi
from ..rpc.extend import Agent, GrpcRpcBackendOptions, current_agent, open_agents, shut_down
from .starting import init_rpc

BACKENDS = {"mpi": "mpi", "rpc": "rpc", "gloo": "rpc"}


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | float | None = None,
    world_size: int = -1,
    rank: int = -1,
) -> None:
    """Make the default process group of all workers of the job (``torch.distributed.init_process_group``).

    Args:
        backend: ``"mpi"``, in processes that ``mpiexec`` started; ``"rpc"``, over the lanes of this process's agent, which
            is started as ``rank<N>`` if there is none; ``"gloo"`` means the same. ``None`` chooses by whether ``mpiexec``
            started this process.
        init_method: where the agent finds the others, as for ``init_rpc``; ``None`` for ``env://``.
        timeout: of collectives: a timedelta, or seconds; ``None`` for 30 minutes.
        world_size: number of processes; -1 takes it from the environment.
        rank: this process's rank; -1 takes it from the environment.

    Raises:
        CollectiveError: there is a default group already, or MPI is not installed.
        RendezvousError: the processes did not come together.
        ValueError: there is no such backend.
    """
    limit = seconds(timeout, DEFAULT_TIMEOUT.total_seconds())
    chosen = BACKENDS.get(backend or _usual_backend())
    if chosen is None:
        raise ValueError(f"backend must be one of {sorted(BACKENDS)}, or None; you gave {backend!r}")
    if chosen == "mpi":
        _open_mpi(limit)
        return
    own = not open_agents()
    if own:
        options = GrpcRpcBackendOptions() if init_method is None else GrpcRpcBackendOptions(init_method=init_method)
        number = rank if rank >= 0 else os.environ.get("RANK", "0")
        init_rpc(
            f"rank{number}", rank=rank, world_size=None if world_size < 0 else world_size, rpc_backend_options=options
        )
    agent = current_agent()
    _open_rpc(agent, limit, partial(shut_down, agent, True, 0.0) if own else _keep)


def _usual_backend() -> str:
    return "mpi" if started_by_mpi() and not open_agents() else "rpc"


def _open_rpc(agent: Agent, timeout: float, release: Callable[[], None]) -> None:
    if agent.state.dynamic:
        raise CollectiveError(
            f"worker {agent.name!r} is in a dynamic group, whose workers come and go; give init_rpc a world_size="
        )
    ranks = list(agent.peers.numbers())  # which are ranks, unless the group is dynamic
    registry.open(partial(AgentGroup, agent), ranks, timeout, release)


def _open_mpi(timeout: float) -> None:
    world = mpi().COMM_WORLD

    def make(name: str, ranks: Sequence[int], seconds: float) -> ProcessGroup:
        communicator = world.Create_group(world.group.Incl(list(ranks)))
        return MpiGroup(communicator, name, ranks, world.rank, seconds)

    registry.open(make, range(world.size), timeout, _keep)


def _keep() -> None:
    """Leave an agent open that others have started."""
