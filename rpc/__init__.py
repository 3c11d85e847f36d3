"""Remote calls between the workers of a job (``torch.distributed.rpc``)."""

from typing import TYPE_CHECKING

from ..core.late_imports import late_imports
from . import backend_registry, functions
from .api import (
    _set_rpc_timeout,
    debug_info,
    get_rpc_timeout,
    get_worker_info,
    get_worker_infos,
    observe,
    rpc_async,
    rpc_sync,
    set_trace,
    shutdown,
    shutdown_async,
    why,
)
from .backend_registry import BackendType
from .calls.current_call import CurrentCall, current_call
from .exactly_once.call_journal import CallJournal, call_journal
from .exactly_once.marks import exactly_once
from .functions.mapping import map as map  # noqa: A004  # not in __all__: a star import must not hide Python's
from .functions.streaming import Stream, stream
from .group.gathering import _all_gather, _all_gather_async, _barrier, _barrier_async, _wait_all
from .group.membership import (
    leave_requested,
    on_worker_joined,
    on_worker_lost,
    wait_for_workers,
    wait_for_workers_async,
)
from .links.worker_info import WorkerInfo
from .meshes.mesh import Mesh, mesh
from .meshes.reference_mesh import ReferenceMesh
from .meshes.scattering import scattered, sharded
from .meshes.value_mesh import ValueMesh
from .options import GrpcRpcBackendOptions, RpcBackendOptions
from .retries.marks import idempotent
from .retries.policy import RetryPolicy
from .security.tls import TlsFiles

if TYPE_CHECKING:
    from ..agents import init_rpc, init_rpc_async
    from ..profiler_dist import _server_process_global_profile
    from ..rref import RRef, remote, value
    from .buffers.buffer import Buffer
    from .exporting.prometheus import metrics, serve_metrics
    from .exporting.tracing import trace_calls
else:
    _LATER = {
        "Buffer": ".buffers.buffer",
        "metrics": ".exporting.prometheus",
        "serve_metrics": ".exporting.prometheus",
        "trace_calls": ".exporting.tracing",
    }
    __getattr__ = late_imports(__name__, _LATER)  # the package's root adds others


__all__ = [
    "BackendType",
    "Buffer",
    "CallJournal",
    "CurrentCall",
    "GrpcRpcBackendOptions",
    "Mesh",
    "RRef",
    "ReferenceMesh",
    "RetryPolicy",
    "RpcBackendOptions",
    "Stream",
    "TlsFiles",
    "ValueMesh",
    "WorkerInfo",
    "_all_gather",
    "_all_gather_async",
    "_barrier",
    "_barrier_async",
    "_server_process_global_profile",
    "_set_rpc_timeout",
    "_wait_all",
    "backend_registry",
    "call_journal",
    "current_call",
    "debug_info",
    "exactly_once",
    "functions",
    "get_rpc_timeout",
    "get_worker_info",
    "get_worker_infos",
    "idempotent",
    "init_rpc",
    "init_rpc_async",
    "metrics",
    "leave_requested",
    "mesh",
    "observe",
    "on_worker_joined",
    "on_worker_lost",
    "why",
    "remote",
    "rpc_async",
    "rpc_sync",
    "scattered",
    "serve_metrics",
    "set_trace",
    "sharded",
    "shutdown",
    "shutdown_async",
    "stream",
    "trace_calls",
    "value",
    "wait_for_workers",
    "wait_for_workers_async",
]
