"""PyTorch as a contender of the RPC benchmark; it needs torch and no telegrad.

``--transport default`` lets TensorPipe choose; ``--transport tcp`` keeps it to TCP sockets, as between two hosts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.distributed.autograd as dist_autograd
from torch.distributed import rpc

if TYPE_CHECKING:
    from .cases import Kit
    from .contender import main
else:
    from cases import Kit
    from contender import main

TRANSPORTS = {"default": {}, "tcp": {"_transports": ["uv"], "_channels": ["basic"]}}


def join(name: str, rank: int, transport: str) -> Kit:
    """Start this process's agent."""
    options = rpc.TensorPipeRpcBackendOptions(**TRANSPORTS[transport])
    rpc.init_rpc(name, rank=rank, world_size=2, rpc_backend_options=options)
    return Kit(rpc, dist_autograd, torch.ones)


if __name__ == "__main__":
    main(join, {"torch": torch.__version__})
