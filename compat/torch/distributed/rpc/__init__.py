"""Remote calls by PyTorch's names (``torch.distributed.rpc``)."""

from .....agents import init_rpc as init_rpc
from .....profiler_dist import _server_process_global_profile as _server_process_global_profile
from .....rpc import GrpcRpcBackendOptions as GrpcRpcBackendOptions
from .....rpc import RpcBackendOptions as RpcBackendOptions
from .....rpc import WorkerInfo as WorkerInfo
from .....rpc import _all_gather as _all_gather
from .....rpc import _barrier as _barrier
from .....rpc import _set_rpc_timeout as _set_rpc_timeout
from .....rpc import _wait_all as _wait_all
from .....rpc import debug_info as debug_info
from .....rpc import functions as functions
from .....rpc import get_rpc_timeout as get_rpc_timeout
from .....rpc import get_worker_info as get_worker_info
from .....rpc import rpc_async as rpc_async
from .....rpc import rpc_sync as rpc_sync
from .....rpc import shutdown as shutdown
from .....rref import RRef as RRef
from .....rref import remote as remote
from . import api as api
from . import backend_registry as backend_registry
from . import constants as constants
from .api import AllGatherStates as AllGatherStates
from .api import _get_current_rpc_agent as _get_current_rpc_agent
from .api import _is_current_rpc_agent_set as _is_current_rpc_agent_set
from .backend_registry import BackendType as BackendType
from .backend_registry import BackendValue as BackendValue
from .backend_registry import backend_registered as backend_registered
from .backend_registry import construct_rpc_backend_options as construct_rpc_backend_options
from .backend_registry import init_backend as init_backend
from .backend_registry import register_backend as register_backend
from .options import TensorPipeRpcBackendOptions as TensorPipeRpcBackendOptions

PyRRef = RRef


def is_available() -> bool:
    """Return ``True``."""
    return True
