"""Remote calls between the workers of a job (``torch.distributed.rpc``)."""

from . import backend_registry, functions
from .api import (
    _set_rpc_timeout,
    debug_info,
    get_rpc_timeout,
    get_worker_info,
    init_rpc,
    rpc_async,
    rpc_sync,
    shutdown,
)
from .gathering import _all_gather, _barrier, _wait_all
from .options import BackendType, GrpcRpcBackendOptions, RpcBackendOptions
from .peers import WorkerInfo

from ..rref import RRef, remote  # isort: skip  # users look for them here; the one import that goes up a floor

__all__ = [
    "BackendType",
    "GrpcRpcBackendOptions",
    "RRef",
    "RpcBackendOptions",
    "WorkerInfo",
    "_all_gather",
    "_barrier",
    "_set_rpc_timeout",
    "_wait_all",
    "backend_registry",
    "debug_info",
    "functions",
    "get_rpc_timeout",
    "get_worker_info",
    "init_rpc",
    "remote",
    "rpc_async",
    "rpc_sync",
    "shutdown",
]
