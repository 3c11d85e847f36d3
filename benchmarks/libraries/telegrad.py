"""Telegrad on its own choice of lanes, or on the one that the transport names; ``inproc`` has all workers in one process."""

from __future__ import annotations

from contextlib import ExitStack

import grpc
import numpy as np
import telegrad as tg
from telegrad.testing import in_process_cluster

from .base import Api, Place
from .torch_model import TorchModel, worker_name


def make(transport: str) -> TorchModel:
    """Return the library on that lane."""
    return InOneProcess() if transport == "inproc" else OnLanes(None if transport == "default" else [transport])


class Telegrad(TorchModel):
    """Telegrad, whatever its workers are."""

    def __init__(self) -> None:
        super().__init__(Api(tg, tg.rpc, tg.autograd_dist, tg.DistributedOptimizer))
        self.versions = {"telegrad": tg.__version__, "numpy": np.__version__, "grpcio": grpc.__version__}


class OnLanes(Telegrad):
    """Workers in processes of their own."""

    def __init__(self, lanes: list[str] | None) -> None:
        super().__init__()
        self.options = tg.rpc.GrpcRpcBackendOptions(lanes=lanes)

    def join(self, rank: int, world: int, place: Place) -> None:
        self.options.init_method = f"tcp://127.0.0.1:{place.port}"
        tg.rpc.init_rpc(worker_name(rank), rank=rank, world_size=world, rpc_backend_options=self.options)


class InOneProcess(Telegrad):
    """Workers that are agents of one process, on the in-process lane."""

    def join(self, rank: int, world: int, place: Place) -> None:
        self._stack = ExitStack()
        agents = self._stack.enter_context(in_process_cluster(*map(worker_name, range(world))))
        self._stack.enter_context(agents[0].use())

    def leave(self) -> None:
        self._stack.close()
