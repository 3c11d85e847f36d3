"""For those who put agents and groups together."""

from typing import TYPE_CHECKING

from ..core.late_imports import late_imports
from .elastic.members import ElasticTrainings as ElasticTrainings
from .failures import Failures as Failures
from .failures import serve_groups as serve_groups
from .group import ProcessGroup as ProcessGroup
from .mailbox import Mailbox as Mailbox
from .observing import collective_waits as collective_waits
from .registry import GROUP_TIMEOUT as GROUP_TIMEOUT
from .registry import registry as registry
from .registry import seconds as seconds

if TYPE_CHECKING:
    from .agent_group import AgentGroup as AgentGroup
    from .mpi_group import MpiGroup as MpiGroup
    from .mpi_group import mpi as mpi
else:  # agents that are in no group do without
    _PLACES = {"AgentGroup": "..agent_group", "MpiGroup": "..mpi_group", "mpi": "..mpi_group"}
    __getattr__ = late_imports(__name__, _PLACES)
