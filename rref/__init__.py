"""Remote references: ``RRef``, ``remote``."""

from ..rpc.extend import Agent, register_part
from .context import RRefContext
from .interceptor import ReferenceInterceptor
from .rref import RRef, remote
from .serving import Owner

__all__ = ["RRef", "RRefContext", "remote"]


def _install(agent: Agent) -> RRefContext:
    context = RRefContext(agent)
    agent.interceptors.append(ReferenceInterceptor(context))
    agent.reference_types += (RRef,)
    Owner(context)
    return context


register_part(_install)


# An import that goes up a floor: an agent that answers references also answers calls that are part of a gradient.
from .. import autograd_dist as _autograd_dist  # noqa: E402
