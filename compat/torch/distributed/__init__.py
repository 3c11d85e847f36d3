"""``torch.distributed``: process groups, calls, gradients through them, modules on other workers, optimizers."""

import importlib
from typing import Any

from ....base.errors import CollectiveError, RendezvousError
from ....collective import is_available as is_available
from .backends import Backend as Backend
from .backends import is_backend_available as is_backend_available
from .backends import is_gloo_available as is_gloo_available
from .backends import is_mpi_available as is_mpi_available
from .backends import is_nccl_available as is_nccl_available
from .groups import P2POp as P2POp
from .groups import _get_default_group as _get_default_group
from .groups import batch_isend_irecv as batch_isend_irecv
from .groups import group as group
from .groups import reduce_op as reduce_op

MODULES = ("algorithms", "autograd", "distributed_c10d", "nn", "optim", "rpc")

GroupMember = group
is_ucc_available = is_xccl_available = is_nccl_available
DistError = DistBackendError = CollectiveError
DistNetworkError = DistStoreError = RendezvousError
LATER = {"GradBucket": "telegrad.collective.parallel"}  # it needs nn


def __getattr__(name: str) -> Any:
    if name in MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    try:
        return getattr(importlib.import_module(LATER.get(name, "telegrad.collective")), name)
    except AttributeError:
        raise AttributeError(
            f"telegrad has nothing for torch.distributed.{name}; docs/migrating.md lists what is left out"
        ) from None
