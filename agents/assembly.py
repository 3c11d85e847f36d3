"""Composition root: one function puts an agent together, of the parts of all layers, in a written order."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

from ..autograd_dist.extend import OutsideContext
from ..core.futures import Future
from ..rpc.extend import (
    Agent,
    DynamicGroup,
    Executor,
    Gathering,
    GrpcRpcBackendOptions,
    Lane,
    MembershipEvents,
    RemoteWarnings,
    Shutdown,
    Vacancies,
    collect_warnings,
    serve_calls,
)
from ..rref import RRef
from ..rref.extend import (
    PromiseInterceptor,
    ReferenceInterceptor,
    RRefContext,
    ValueOf,
    places_wanted,
    proxy_of_outcome,
    serve_methods,
    serve_references,
)
from .late_parts import add_gradients, add_late_parts, add_observer, add_profiler, backward_from


def make_agent(
    name: str,
    rank: int,
    options: GrpcRpcBackendOptions | None = None,
    *,
    lanes: Sequence[Lane],
    executor: Executor | None = None,
    loop: asyncio.AbstractEventLoop | None = None,
    io_loop: asyncio.AbstractEventLoop | None = None,
    now: Callable[[], float] = time.monotonic,
    secret: bytes | None = None,
) -> Agent:
    """Return an agent that answers calls, references and gradients. It neither listens nor works yet.

    Args:
        name: the worker's name, unique in the job.
        rank: its rank.
        options: see ``GrpcRpcBackendOptions``.
        lanes: transports; the first that both sides know is used.
        executor: runs user functions and callbacks; ``None`` makes thread pools.
        loop: runs coroutines; ``None`` makes a thread with an event loop. One that is given is not stopped.
        io_loop: runs timers; ``None`` takes the process's loop, on which the lanes are too.
        now: monotonic seconds.
        secret: the job's secret; ``None`` takes the environment's or the user's.

    Raises:
        AuthenticationError: the secret is too short, or its file cannot be used.
    """
    agent = Agent(
        name, rank, options, lanes=lanes, executor=executor, loop=loop, io_loop=io_loop, now=now, secret=secret
    )
    add_parts(agent)
    return agent


def add_parts(agent: Agent) -> None:
    """Add the parts of all layers to an agent that knows its number."""
    add_late_parts(agent)
    # rpc: calls of functions, gatherings, workers that join later, shutdown
    serve_calls(agent)
    agent.add_part(Gathering(agent.peers, agent.caller, agent.losses, agent.timers))
    agent.add_part(DynamicGroup(agent))
    agent.add_part(Vacancies(agent))
    agent.add_part(MembershipEvents(agent))
    agent.add_part(Shutdown(agent))
    # rref: references, which travel in every message
    references = RRefContext(
        agent, backward_from, agent.options.ignore_rref_leaks, places_wanted(agent.options.rref_places)
    )
    agent.add_part(references)
    agent.codec.reference_types = (RRef, ValueOf, Future)
    Future.proxy_of_outcome = staticmethod(proxy_of_outcome)
    serve_references(references)
    serve_methods(references)
    add_observer(agent, references)
    # The order in which interceptors see a message: a tensor may lie behind a reference, never the reverse.
    remote_warnings = RemoteWarnings(agent.peers)
    collect_warnings()
    agent.codec.intercept(
        ReferenceInterceptor(references),
        PromiseInterceptor(),
        add_gradients(agent),
        add_profiler(agent),
        remote_warnings,
    )
    agent.codec.on_tensors = OutsideContext(agent.name)
