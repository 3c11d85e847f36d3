"""Defaults of calls (``torch.distributed.rpc.constants``)."""

from .....rpc import GrpcRpcBackendOptions
from .....rpc.extend import UNSET_RPC_TIMEOUT as UNSET_RPC_TIMEOUT

DEFAULT_INIT_METHOD = GrpcRpcBackendOptions.init_method
DEFAULT_NUM_WORKER_THREADS = GrpcRpcBackendOptions.num_worker_threads
DEFAULT_RPC_TIMEOUT_SEC = GrpcRpcBackendOptions.rpc_timeout
DEFAULT_SHUTDOWN_TIMEOUT = 0.0
