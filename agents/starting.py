"""``init_rpc``: make this process's agent, let it listen, and wait for the other workers of the job."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from ..base.allocator import share_arenas
from ..base.errors import RendezvousError, RpcError
from ..base.process_title import title_worker
from ..base.worker_reports import reporter
from ..core.futures import Future, in_thread, shield
from ..rpc.extend import (
    DEFAULT_LANES,
    Agent,
    BackendType,
    DynamicGroup,
    GrpcRpcBackendOptions,
    Plan,
    RpcBackendOptions,
    check_name,
    find_backend,
    init_backend,
    install_debugger,
    make_lanes,
    open_agents,
    plan_rendezvous,
    record_expulsion,
    rpc_agents,
)
from .assembly import add_parts
from .commands import open_to_commands


def init_rpc(
    name: str | None = None,
    backend: BackendType | None = None,
    rank: int = -1,
    world_size: int | None = None,
    rpc_backend_options: RpcBackendOptions | None = None,
) -> None:
    """Start this process's agent and wait until all workers of the job have joined.

    Without a world size the job is a dynamic group: workers join it at any time and leave with ``shutdown``, which then waits
    for the work of this worker only. A name and a rank can be used again after that. Over ``tcp://`` and ``env://`` rank 0 is
    its first worker, and the others join at it; over ``file://`` they join at any, in any order.

    Args:
        name: this worker's name, unique in the job: letters, digits, ``_``, ``-``, ``:`` and ``.``, at most 128; ``None`` takes
            its launcher's (``TELEGRAD_WORKER``), else ``worker<rank>``.
        backend: which agent; ``BackendType.GRPC`` is the default.
        rank: this worker's rank, 0 to ``world_size - 1``; -1 takes ``RANK`` from the environment, under ``mpiexec`` MPI's.
        world_size: how many workers the job has; ``None`` takes ``WORLD_SIZE`` from the environment, under ``mpiexec`` MPI's.
            0, or ``None`` where neither gives a number, makes or joins a dynamic group (over ``tcp://``, ``env://`` or ``file://``).
        rpc_backend_options: see ``GrpcRpcBackendOptions``.

    Raises:
        RendezvousError: the workers did not come together; the message says who is missing or what contradicts.
        RpcError: this process has an agent already.
        ValueError: there is no such backend, or the name has other characters.
        TypeError: an argument has a type that none has that fits.
    """
    name = name if name is not None else os.environ.get("TELEGRAD_WORKER")
    if name is not None:
        check_name(name)
    if rpc_backend_options is not None and not isinstance(rpc_backend_options, RpcBackendOptions):
        given = type(rpc_backend_options).__name__
        raise TypeError(f"rpc_backend_options must be GrpcRpcBackendOptions; you gave {given}")
    chosen = find_backend(backend, rpc_backend_options)
    if agents := rpc_agents():
        raise RpcError(
            f"this process is worker {agents[0].name!r} already; call rpc.shutdown() before rpc.init_rpc({name!r})"
        )
    try:
        init_backend(
            chosen, store=None, name=name, rank=rank, world_size=world_size, rpc_backend_options=rpc_backend_options
        )
    except RpcError as error:
        # Frames of the rendezvous say nothing to the caller.
        raise error.with_traceback(None) from error.__cause__


def init_rpc_async(
    name: str | None = None,
    backend: BackendType | None = None,
    rank: int = -1,
    world_size: int | None = None,
    rpc_backend_options: RpcBackendOptions | None = None,
) -> Future[None]:
    """Return the future of ``init_rpc``, for ``await``.

    Args:
        name, backend, rank, world_size, rpc_backend_options: as for ``init_rpc``.
    """
    shield.install()  # only the main thread can
    return in_thread(init_rpc, name, backend, rank, world_size, rpc_backend_options)


def start_grpc(name: str | None, rank: int, world_size: int | None, options: RpcBackendOptions | None) -> Agent:
    """Start the gRPC agent: listen, wait for the other workers, begin to work.

    Args:
        name: this worker's name; ``None`` for ``worker<rank>``.
        rank: its rank; -1 takes it from the environment.
        world_size: number of workers; ``None`` takes it from the environment.
        options: ``GrpcRpcBackendOptions``, or ``None`` for the defaults.
    """
    if options is None:
        options = GrpcRpcBackendOptions()
    if not isinstance(options, GrpcRpcBackendOptions):
        raise TypeError(f"rpc_backend_options must be GrpcRpcBackendOptions; you gave {type(options).__name__}")
    plan = plan_rendezvous(
        options.init_method,
        rank,
        world_size,
        options.init_timeout,
        served=meeting_places(),
        replaceable=options.replacement_seconds() > 0,
    )
    if options.replace_within and plan.world_size and not plan.places:
        raise RendezvousError(
            f"replace_within={options.replace_within:g} needs a rendezvous that outlives each worker: give "
            f"init_method='file:///path'; you gave {options.init_method!r}"
        )
    agent = open_agent(name or f"worker{plan.rank}", plan, options, add_parts)
    if agent.state.dynamic:
        open_group(agent, plan)
    return agent


def open_group(agent: Agent, plan: Plan) -> None:
    """Let other workers join the dynamic group of an agent: at every worker if a log keeps its members, else at rank 0."""
    if (log := plan.rendezvous.log) is not None:
        from ..rpc.extend import LoggedGroup

        agent.add_part(group := LoggedGroup(agent, log))
        plan.rendezvous.open_group(group.admit)
    elif plan.rank == 0:
        plan.rendezvous.open_group(agent.part(DynamicGroup).admit)


def meeting_places() -> list[str]:
    """Return the addresses at which the workers of this process's agents have come together, and rank 0 of each listens."""
    return [agent.rendezvous for agent in open_agents() if agent.rendezvous]


def open_agent(
    name: str,
    plan: Plan,
    options: GrpcRpcBackendOptions,
    add: Callable[[Agent], None],
    private: bool = False,
) -> Agent:
    """Return an agent that has joined a rendezvous and works.

    Args:
        name: this worker's name.
        plan: the rendezvous.
        options: of the agent.
        add: adds the parts of which it consists.
        private: see ``Agent``. Others of its workers may leave before it, as in a dynamic group.
    """
    if reporter() is not None:  # a launcher started this process, for this worker
        title_worker(name)
    if plan.tls is not None and options.tls is None and not options.insecure:
        options = replace(options, tls=plan.tls)
    share_arenas()
    lanes = make_lanes(options.lanes or DEFAULT_LANES)
    try:
        agent = Agent(name, plan.rank, options, lanes=lanes, secret=plan.secret, private=private)
    except BaseException:
        for lane in lanes:
            lane.close()
        raise
    agent.on_expelled.append(partial(record_expulsion, name))  # the process is this worker's: it fails with it
    try:
        host = options.host or os.environ.get("TELEGRAD_HOST")
        secured = options.insecure or agent.credentials.tls is not None
        agent.listen(plan.rendezvous.prepare(lanes, plan.rank, host, secured))
        address = plan.rendezvous.address or options.init_method
        access = open_to_commands(agent, plan, address)
        members = plan.rendezvous.join(agent.credentials, plan.world_size, options.init_timeout, options.keepalive)
        agent.joined(members, private or plan.world_size == 0 or plan.places > 0, plan.places, plan.rendezvous.absent)
        agent.rendezvous = plan.rendezvous.address
        add(agent)
        if access is not None:
            access.joined(agent)  # first: a call that holds the interpreter may come at once
        agent.start()
        if not private:
            install_debugger(agent)
    except BaseException:
        agent.close("its rendezvous failed", farewell=False)
        raise
    return agent
