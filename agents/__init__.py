"""Agents of all layers: the one place that puts an agent together, and the one that starts it.

An ``Agent`` of ``rpc`` knows nothing of references and gradients; ``assembly.py`` lists everything that one consists of.
``init_rpc`` is here for the same reason. Users find it as ``telegrad.rpc.init_rpc``.
"""

from typing import TYPE_CHECKING

from ..base.late_imports import late_imports
from .assembly import make_agent
from .starting import init_rpc, init_rpc_async, start_grpc

if TYPE_CHECKING:
    from .process_groups import init_process_group
else:
    __getattr__ = late_imports(__name__, {"init_process_group": ".process_groups"})

__all__ = ["init_process_group", "init_rpc", "init_rpc_async", "make_agent", "start_grpc"]
