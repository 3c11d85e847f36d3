"""For those who put agents and groups together."""

from typing import TYPE_CHECKING

from ..core.late_imports import late_imports
from .elastic.members import serve_elastic
from .failures import serve_groups
from .group import ProcessGroup
from .observing import collective_waits
from .registry import GROUP_TIMEOUT, registry, seconds

if TYPE_CHECKING:
    from .agent_group import AgentGroup
    from .mpi_group import MpiGroup, mpi
else:  # agents that are in no group do without
    _PLACES = {"AgentGroup": "..agent_group", "MpiGroup": "..mpi_group", "mpi": "..mpi_group"}
    __getattr__ = late_imports(__name__, _PLACES)

__all__ = [
    "GROUP_TIMEOUT",
    "AgentGroup",
    "MpiGroup",
    "ProcessGroup",
    "collective_waits",
    "mpi",
    "registry",
    "seconds",
    "serve_elastic",
    "serve_groups",
]
