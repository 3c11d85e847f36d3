"""Parts of an agent with which it has contexts, backward passes, and steps of optimizers."""

from __future__ import annotations

from ..rpc.extend import Agent
from .contexts import Contexts, serve_passes
from .interceptor import AutogradInterceptor
from .step_queue import StepQueue
from .step_requests import serve_steps


def serve_gradients(agent: Agent) -> None:
    """Let an agent take part in distributed autograd; its codec has a ``LateInterceptor`` for that."""
    contexts = Contexts(agent)
    agent.add_part(contexts)
    queue = StepQueue(agent)
    agent.add_part(queue)
    serve_passes(contexts)
    serve_steps(contexts, queue)
    agent.codec.replace(AutogradInterceptor(contexts))
