"""For those who put agents and groups together."""

from typing import TYPE_CHECKING

from ..base.late_imports import late_imports
from .numbers import GroupMethod as GroupMethod

if TYPE_CHECKING:
    from .agent_group import AgentGroup as AgentGroup
    from .elastic.members import ElasticTrainings as ElasticTrainings
    from .failures import Failures as Failures
    from .failures import serve_groups as serve_groups
    from .group import ProcessGroup as ProcessGroup
    from .mailbox import Mailbox as Mailbox
    from .mpi_group import MpiGroup as MpiGroup
    from .mpi_group import mpi as mpi
    from .observing import collective_waits as collective_waits
    from .registry import GROUP_TIMEOUT as GROUP_TIMEOUT
    from .registry import registry as registry
    from .registry import seconds as seconds
else:  # agents that are in no group do without
    __getattr__ = late_imports(
        __name__,
        {
            "AgentGroup": "..agent_group",
            "ElasticTrainings": "..elastic.members",
            **dict.fromkeys(("Failures", "serve_groups"), "..failures"),
            "ProcessGroup": "..group",
            "Mailbox": "..mailbox",
            **dict.fromkeys(("MpiGroup", "mpi"), "..mpi_group"),
            "collective_waits": "..observing",
            **dict.fromkeys(("GROUP_TIMEOUT", "registry", "seconds"), "..registry"),
        },
    )
