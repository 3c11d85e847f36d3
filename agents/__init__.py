"""Agents of all layers: the one place that puts an agent together, and the one that starts it.

An ``Agent`` of ``rpc`` knows nothing of references and gradients; ``assembly.py`` lists everything that one consists of.
``init_rpc`` is here for the same reason. Users find it as ``telegrad.rpc.init_rpc``.
"""

from .assembly import make_agent
from .process_groups import init_process_group
from .starting import init_rpc, init_rpc_async, start_grpc

__all__ = ["init_process_group", "init_rpc", "init_rpc_async", "make_agent", "start_grpc"]
