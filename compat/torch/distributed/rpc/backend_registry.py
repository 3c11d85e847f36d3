"""Backends of agents (``torch.distributed.rpc.backend_registry``)."""

from .....rpc import backend_registry as ours
from .options import BackendType as BackendType

BackendValue = ours.BackendValue
backend_registered = ours.backend_registered
construct_rpc_backend_options = ours.construct_rpc_backend_options
init_backend = ours.init_backend
register_backend = ours.register_backend
