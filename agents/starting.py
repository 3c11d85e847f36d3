"""``init_rpc``: make this process's agent, let it listen, and wait for the other workers of the job."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial

from ..core.errors import RpcError
from ..rpc.extend import (
    DEFAULT_LANES,
    Agent,
    BackendType,
    GrpcRpcBackendOptions,
    RpcBackendOptions,
    check_name,
    find_backend,
    make_lanes,
    open_agents,
    plan_rendezvous,
    record_expulsion,
)
from .assembly import make_agent


def init_rpc(
    name: str | None = None,
    backend: BackendType | None = None,
    rank: int = -1,
    world_size: int | None = None,
    rpc_backend_options: RpcBackendOptions | None = None,
) -> None:
    """Start this process's agent and wait until all workers of the job have joined.

    Args:
        name: this worker's name, unique in the job: letters, digits, ``_``, ``-``, ``:`` and ``.``, at most 128; ``None`` takes
            its launcher's (``TELEGRAD_WORKER``), else ``worker<rank>``.
        backend: which agent; ``BackendType.GRPC`` is the default.
        rank: this worker's rank, 0 to ``world_size - 1``; -1 takes ``RANK`` from the environment, under ``mpiexec`` MPI's.
        world_size: how many workers the job has; ``None`` takes ``WORLD_SIZE`` from the environment, under ``mpiexec`` MPI's.
        rpc_backend_options: see ``GrpcRpcBackendOptions``.

    Raises:
        RendezvousError: the workers did not come together; the message says who is missing or what contradicts.
        RpcError: this process has an agent already.
        ValueError: there is no such backend, or the name has other characters.
        TypeError: an argument has a type that none has that fits.
    """
    start = start_grpc if backend in (None, BackendType.GRPC) else find_backend(backend)
    name = name if name is not None else os.environ.get("TELEGRAD_WORKER")
    if name is not None or start is not start_grpc:
        check_name(name)
    if rpc_backend_options is not None and not isinstance(rpc_backend_options, RpcBackendOptions):
        given = type(rpc_backend_options).__name__
        raise TypeError(f"rpc_backend_options must be GrpcRpcBackendOptions; you gave {given}")
    if agents := open_agents():
        raise RpcError(
            f"this process is worker {agents[0].name!r} already; call rpc.shutdown() before rpc.init_rpc({name!r})"
        )
    start(name, rank, world_size, rpc_backend_options)


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
    plan = plan_rendezvous(options.init_method, rank, world_size, options.init_timeout)
    name = name or f"worker{plan.rank}"
    if plan.tls is not None and options.tls is None and not options.insecure:
        options = replace(options, tls=plan.tls)
    lanes = make_lanes(options.lanes or DEFAULT_LANES)
    try:
        agent = make_agent(name, plan.rank, options, lanes=lanes, secret=plan.secret)
    except BaseException:
        for lane in lanes:
            lane.close()
        raise
    agent.on_expelled.append(partial(record_expulsion, name))  # the process is this worker's: it fails with it
    try:
        host = options.host or os.environ.get("TELEGRAD_HOST")
        secured = options.insecure or agent.credentials.tls is not None
        agent.listen(plan.rendezvous.prepare(lanes, plan.rank, host, secured))
        members = plan.rendezvous.join(agent.credentials, plan.world_size, options.init_timeout, options.keepalive)
        agent.start(members)
    except BaseException:
        agent.close("its rendezvous failed", farewell=False)
        raise
    return agent
