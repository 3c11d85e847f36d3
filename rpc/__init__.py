"""Remote calls between the workers of a job (``torch.distributed.rpc``)."""

from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    from ..rref import RRef, remote
else:

    def __getattr__(name: str) -> object:
        # Users look for these here; they do not exist yet if it was `rref` that asked for this room.
        if name not in ("RRef", "remote"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from .. import rref

        return getattr(rref, name)


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

# An import that goes up a floor: an agent answers references too, so whoever has this room has those.
from .. import rref as _rref
