"""For those who put agents and groups together."""

from .agent_group import AgentGroup
from .failures import serve_groups
from .group import ProcessGroup
from .mpi_group import MpiGroup, mpi
from .registry import DEFAULT_TIMEOUT, registry, seconds

__all__ = ["DEFAULT_TIMEOUT", "AgentGroup", "MpiGroup", "ProcessGroup", "mpi", "registry", "seconds", "serve_groups"]
