"""For those who put agents and groups together."""

from .agent_group import AgentGroup
from .mailbox import serve_messages
from .mpi_group import MpiGroup, mpi
from .registry import DEFAULT_TIMEOUT, registry, seconds

__all__ = ["DEFAULT_TIMEOUT", "AgentGroup", "MpiGroup", "mpi", "registry", "seconds", "serve_messages"]
