"""Backends of agents (``torch.distributed.rpc.backend_registry``): TensorPipe's name is one of gRPC's agent."""

from typing import Any

from .....rpc import BackendType as BackendType
from .....rpc import backend_registry as ours
from .options import TensorPipeRpcBackendOptions

BackendValue = ours.BackendValue
backend_registered = ours.backend_registered
construct_rpc_backend_options = ours.construct_rpc_backend_options
init_backend = ours.init_backend
register_backend = ours.register_backend


def _options(
    rpc_timeout: float,
    init_method: str,
    num_worker_threads: int = 16,
    _transports: list[str] | None = None,
    _channels: list[str] | None = None,
    **kwargs: Any,
) -> TensorPipeRpcBackendOptions:
    return TensorPipeRpcBackendOptions(
        rpc_timeout=rpc_timeout,
        init_method=init_method,
        num_worker_threads=num_worker_threads,
        _transports=_transports,
        _channels=_channels,
        **kwargs,
    )


if not backend_registered("TENSORPIPE"):
    register_backend("TENSORPIPE", _options, BackendType.GRPC.value.init_backend_handler)
