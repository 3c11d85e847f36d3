"""Telegrad as a contender of the RPC benchmark; it needs no PyTorch. ``--transport`` names a lane or is ``default``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import grpc
import numpy as np
import telegrad as tg

if TYPE_CHECKING:
    from .cases import Kit
    from .contender import main
else:
    from cases import Kit
    from contender import main


def join(name: str, rank: int, transport: str) -> Kit:
    """Start this process's agent."""
    lanes = None if transport == "default" else [transport]
    options = tg.rpc.GrpcRpcBackendOptions(lanes=lanes)
    tg.rpc.init_rpc(name, rank=rank, world_size=2, rpc_backend_options=options)
    return Kit(tg.rpc, tg.autograd_dist, tg.ones)


if __name__ == "__main__":
    main(join, {"telegrad": tg.__version__, "numpy": np.__version__, "grpcio": grpc.__version__})
