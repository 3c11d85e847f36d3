"""Which agents ``init_rpc`` can start, by backend name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from . import expulsion
from .agent import Agent
from .lanes.base import Lane, make_lane
from .options import BackendType, GrpcRpcBackendOptions, RpcBackendOptions
from .rendezvous import plan_rendezvous

Starter = Callable[[str, int, "int | None", "RpcBackendOptions | None"], Agent]
_starters: dict[Any, Starter] = {}
DEFAULT_LANES = ("grpc",)
NAME = re.compile(r"[A-Za-z0-9_:.\-]{1,128}")


def register_backend(backend: Any, starter: Starter) -> None:
    """Make ``init_rpc(backend=backend)`` call ``starter(name, rank, world_size, options)``.

    Raises:
        ValueError: the backend is registered already.
    """
    if backend in _starters:
        raise ValueError(f"backend {backend!r} is registered already; choose another name")
    _starters[backend] = starter


def start(backend: Any, name: str, rank: int, world_size: int | None, options: RpcBackendOptions | None) -> Agent:
    """Start an agent.

    Raises:
        ValueError: there is no such backend, or the name will not do.
    """
    if backend not in _starters:
        raise ValueError(f"backend must be one of {list(_starters)}; you gave {backend!r}")
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise ValueError(f"a worker's name is 1 to 128 letters, digits, '_', '-', ':' or '.'; you gave {name!r}")
    return _starters[backend](name, rank, world_size, options)


def start_grpc(name: str, rank: int, world_size: int | None, options: RpcBackendOptions | None) -> Agent:
    """Start the gRPC agent: listen, meet the others, begin to work."""
    if options is None:
        options = GrpcRpcBackendOptions()
    if not isinstance(options, GrpcRpcBackendOptions):
        raise TypeError(f"rpc_backend_options must be GrpcRpcBackendOptions; you gave {type(options).__name__}")
    plan = plan_rendezvous(options.init_method, rank, world_size)
    lanes = _make_lanes(options.lanes or DEFAULT_LANES)
    try:
        agent = Agent(name, plan.rank, options, lanes=lanes, secret=plan.secret)
    except BaseException:
        _close_lanes(lanes)
        raise
    agent.on_expelled.append(partial(expulsion.record, name))  # the process is this worker's: it fails with it
    try:
        agent.listen(plan.rendezvous.prepare(lanes, plan.rank))
        agent.start(plan.rendezvous.meet(agent, plan.world_size, options.init_timeout))
    except BaseException:
        agent.close("its rendezvous failed", farewell=False)
        raise
    return agent


def _make_lanes(schemes: Iterable[str]) -> list[Lane]:
    lanes: list[Lane] = []
    try:
        for scheme in schemes:
            lanes.append(make_lane(scheme))  # noqa: PERF401  # what was made is closed below
    except BaseException:
        _close_lanes(lanes)
        raise
    return lanes


def _close_lanes(lanes: Iterable[Lane]) -> None:
    for lane in lanes:
        lane.close()


register_backend(BackendType.GRPC, start_grpc)
