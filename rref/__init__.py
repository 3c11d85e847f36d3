"""Remote references: ``RRef``, ``remote``."""

from ..rpc.extend import Agent, register_part
from .context import RRefContext
from .interceptor import ReferenceInterceptor
from .remote import Owner, remote
from .rref import RRef

__all__ = ["RRef", "RRefContext", "remote"]


def _install(agent: Agent) -> RRefContext:
    context = RRefContext(agent)
    agent.interceptors.append(ReferenceInterceptor(context))
    agent.reference_types += (RRef,)
    Owner(context)
    return context


register_part(_install)
