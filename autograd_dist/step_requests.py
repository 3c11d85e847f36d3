"""Requests for steps of optimizers, at the workers that own their parameters.

They are not calls through a proxy, because a step needs only two numbers, and nothing of the protocol of references. The
worker that asks keeps its reference to the optimizer until the answer has come.
"""

from __future__ import annotations

from functools import partial

from ..core.extend import profiles, record_call
from ..core.futures import Future
from ..rpc.extend import Agent, Peer, ServerCall
from .contexts import contexts_of
from .numbers import GradientMethod
from .step_queue import StepQueue


def request_step(agent: Agent, peer: Peer, number: int, context_id: int) -> Future[None]:
    """Ask a worker for a step of one of its optimizers; the future completes when the step is done.

    Args:
        agent: this worker's agent.
        peer: the worker that has the optimizer.
        number: number of the optimizer at that worker (``StepQueue.add``).
        context_id: id of the context that has the gradients.
    """
    name = peer.info.name
    contexts = contexts_of(agent)
    context = contexts.get(context_id)
    joins = context is not None and contexts.reach(context, peer.number)
    what = f"the optimizer's step on worker {name!r}"
    body = number, context_id, joins
    request = partial(agent.caller.request, peer, GradientMethod.STEP, body, agent.rpc_timeout, what)
    if not profiles.get():
        return request()
    return record_call(f"rpc_async#step({agent.name} -> {name})", request)


def serve_steps(agent: Agent) -> None:
    """Let an agent answer requests for steps."""
    agent.server.serve(GradientMethod.STEP, partial(_serve_step, agent))


def _serve_step(agent: Agent, call: ServerCall) -> None:
    number, context_id, joins = call.open()
    call.what = "an optimizer's step"
    optimizer = agent.part(StepQueue).find(number)
    if joins:
        contexts_of(agent).join(context_id, call.sender)
    done = optimizer.step(context_id)
    try:
        if done.known():
            call.reply(None)
        else:
            call.reply_with(done, is_future=True)
    finally:
        del done  # as in ``StepQueue.submit``
