"""Distributed autograd: gradients through remote calls (``torch.distributed.autograd``), and optimizers for them."""

from ..rpc.extend import Agent, register_part
from ..rref import RRef
from .api import context, get_gradients
from .backward import backward, backward_from, install
from .contexts import Contexts
from .interceptor import AutogradInterceptor
from .optimizer import DistributedOptimizer, StepQueue

__all__ = ["DistributedOptimizer", "backward", "context", "get_gradients"]


def _install(agent: Agent) -> Contexts:
    contexts = Contexts(agent)
    agent.interceptors.append(AutogradInterceptor(contexts))
    install(contexts)
    return contexts


register_part(_install)
register_part(StepQueue)
RRef._backward = staticmethod(backward_from)
