"""Remote calls between the workers of a job (``torch.distributed.rpc``)."""

from typing import TYPE_CHECKING

from ..base.late_imports import late_imports
from . import backend_registry, functions
from .api import (
    _set_rpc_timeout,
    debug_info,
    get_rpc_timeout,
    get_worker_info,
    get_worker_infos,
    rpc_async,
    rpc_sync,
    shutdown,
    shutdown_async,
)
from .backend_registry import BackendType
from .calls.current_call import CurrentCall, current_call
from .exactly_once.marks import exactly_once
from .group.gathering import _all_gather, _all_gather_async, _barrier, _barrier_async, _wait_all
from .group.membership import (
    leave_requested,
    on_worker_joined,
    on_worker_lost,
    wait_for_workers,
    wait_for_workers_async,
)
from .links.worker_info import WorkerInfo
from .options import GrpcRpcBackendOptions, RpcBackendOptions
from .security.tls import TlsFiles

if TYPE_CHECKING:
    from ..agents import init_rpc, init_rpc_async
    from ..profiler_dist import _server_process_global_profile
    from ..rref import RRef, remote, value
    from .buffers.buffer import Buffer
    from .debugging.hooks import set_trace
    from .exactly_once.call_journal import CallJournal, call_journal
    from .exporting.prometheus import metrics, serve_metrics
    from .exporting.tracing import trace_calls
    from .functions.mapping import map as map  # noqa: A004  # not in __all__: a star import must not hide Python's
    from .functions.streaming import Stream, stream
    from .meshes.mesh import Mesh, mesh
    from .meshes.mesh_stream import MeshStream
    from .meshes.reference_mesh import ReferenceMesh
    from .meshes.scattering import scattered, sharded
    from .meshes.value_mesh import ValueMesh
    from .observing.asking import observe, why
    from .retries.marks import idempotent
    from .retries.policy import RetryPolicy
else:
    _LATER = {
        "Buffer": ".buffers.buffer",
        "CallJournal": ".exactly_once.call_journal",
        "Mesh": ".meshes.mesh",
        "MeshStream": ".meshes.mesh_stream",
        "ReferenceMesh": ".meshes.reference_mesh",
        "RetryPolicy": ".retries.policy",
        "Stream": ".functions.streaming",
        "ValueMesh": ".meshes.value_mesh",
        "call_journal": ".exactly_once.call_journal",
        "idempotent": ".retries.marks",
        "map": ".functions.mapping",
        "mesh": ".meshes.mesh",
        "metrics": ".exporting.prometheus",
        "observe": ".observing.asking",
        "scattered": ".meshes.scattering",
        "serve_metrics": ".exporting.prometheus",
        "set_trace": ".debugging.hooks",
        "sharded": ".meshes.scattering",
        "stream": ".functions.streaming",
        "trace_calls": ".exporting.tracing",
        "why": ".observing.asking",
    }
    __getattr__ = late_imports(__name__, _LATER)  # the package's root adds others


__all__ = [
    "BackendType",
    "Buffer",
    "CallJournal",
    "CurrentCall",
    "GrpcRpcBackendOptions",
    "Mesh",
    "MeshStream",
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
