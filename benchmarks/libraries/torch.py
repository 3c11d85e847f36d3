"""PyTorch. Its transports: ``default`` lets TensorPipe choose; ``tcp`` keeps it to TCP sockets, as between two hosts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as groups
import torch.distributed.autograd as dist_autograd
from torch.distributed import rpc
from torch.distributed.optim import DistributedOptimizer
from torch.distributed.pipelining import PipelineStage, Schedule1F1B

from .base import Api, Place
from .torch_model import TorchModel, worker_name

TRANSPORTS: dict[str, dict[str, Any]] = {"default": {}, "tcp": {"_transports": ["uv"], "_channels": ["basic"]}}


def make(transport: str) -> TorchModel:
    """Return the library on that transport."""
    return PyTorch(TRANSPORTS[transport])


class PyTorch(TorchModel):
    """PyTorch, each worker in a process."""

    def __init__(self, settings: dict[str, Any]) -> None:
        super().__init__(Api(torch, rpc, dist_autograd, DistributedOptimizer, groups, make_pipeline))
        self.versions = {"torch": torch.__version__}
        self._settings = settings

    def join(self, rank: int, world: int, place: Place) -> None:
        options = rpc.TensorPipeRpcBackendOptions(init_method=f"tcp://127.0.0.1:{place.port}", **self._settings)
        rpc.init_rpc(worker_name(rank), rank=rank, world_size=world, rpc_backend_options=options)


def make_pipeline(make: Callable[[int], Any], microbatches: int, inputs: Any, targets: Any) -> Callable[[], Any]:
    """Return a step, forward and backward: each worker has the stage of its rank.

    Args:
        make: returns the module of a stage.
        microbatches: into how many parts the batch is cut.
        inputs: of a whole batch.
        targets: likewise.
    """
    rank, stages = groups.get_rank(), groups.get_world_size()
    stage = PipelineStage(make(rank), rank, stages, torch.device("cpu"))
    schedule = Schedule1F1B(stage, microbatches, torch.nn.functional.mse_loss)
    if rank == 0:
        return lambda: schedule.step(inputs)
    return lambda: schedule.step(target=targets)
