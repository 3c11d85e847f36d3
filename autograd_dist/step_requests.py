"""Requests for steps of optimizers, at the workers that own their parameters.

They are not calls through a proxy, because a step needs only two numbers, and nothing of the protocol of references. The
worker that asks keeps its reference to the optimizer until the answer has come.
"""

from __future__ import annotations

from functools import partial

from ..core.extend import profiles, record_call
from ..core.futures import Future
from ..rpc.extend import Peer, ServerCall
from .contexts import Contexts
from .numbers import GradientMethod
from .step_queue import StepQueue


def request_step(contexts: Contexts, peer: Peer, number: int, context_id: int) -> Future[None]:
    """Ask a worker for a step of one of its optimizers; the future completes when the step is done.

    Args:
        contexts: those of this worker.
        peer: the worker that has the optimizer.
        number: number of the optimizer at that worker (``StepQueue.add``).
        context_id: id of the context that has the gradients.
    """
    agent, name = contexts.agent, peer.info.name
    context = contexts.get(context_id)
    joins = context is not None and contexts.reach(context, peer.number)
    what = f"the optimizer's step on worker {name!r}"
    body = number, context_id, joins
    if not profiles.get():
        return agent.caller.begin(peer, GradientMethod.STEP, body, agent.rpc_timeout, what).future
    request = partial(agent.caller.request, peer, GradientMethod.STEP, body, agent.rpc_timeout, what)
    return record_call(f"rpc_async#step({agent.name} -> {name})", request)


def serve_steps(contexts: Contexts, queue: StepQueue) -> None:
    """Let the agent of ``contexts`` answer requests for steps of the optimizers that ``queue`` knows."""
    contexts.agent.server.serve(GradientMethod.STEP, partial(_serve_step, contexts, queue))


def _serve_step(contexts: Contexts, queue: StepQueue, call: ServerCall) -> None:
    number, context_id, joins = call.open()
    call.what = "an optimizer's step"
    optimizer = queue.find(number)
    if joins:
        contexts.join(context_id, call.sender)
    done = optimizer.step(context_id)
    try:
        if done.known():
            call.reply(None)
        else:
            call.reply_with(done, is_future=True)
    finally:
        del done  # as in ``StepQueue.submit``
