"""PyTorch's part of the benchmark of captured steps: one of two workers. The first reads numbers of steps and prints times.

It is run by an interpreter that has PyTorch: ``python captured_steps_torch.py RANK PORT FEATURES ROWS``.
"""

from __future__ import annotations

import sys
import time
from statistics import median
from typing import Any

import torch
import torch.distributed.autograd as dist_autograd
from torch.distributed import rpc
from torch.distributed.nn import RemoteModule
from torch.distributed.optim import DistributedOptimizer


class TorchLayers(torch.nn.Module):  # type: ignore[misc]
    """Layers at the other worker."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(size, size), torch.nn.Tanh(), torch.nn.Linear(size, size))

    def forward(self, x: Any) -> Any:
        """Return the result of the layers."""
        return self.layers(x)


def measure(size: int, rows: int) -> None:
    """Answer each number of steps in the input with the median time of one, in seconds."""
    remote = RemoteModule("worker1/cpu", TorchLayers, args=(size,))
    first, last = torch.nn.Linear(size, size), torch.nn.Linear(size, 1)
    own = [rpc.RRef(each) for layer in (first, last) for each in layer.parameters()]
    optimizer = DistributedOptimizer(torch.optim.SGD, remote.remote_parameters() + own, lr=0.01)
    x, y = torch.randn(rows, size), torch.randn(rows, 1)
    for line in sys.stdin:
        found = []
        for _ in range(int(line)):
            began = time.perf_counter()
            with dist_autograd.context() as context:
                loss = (last(remote(first(x).tanh())) - y).square().mean()
                dist_autograd.backward(context, [loss])
                optimizer.step(context)
            found.append(time.perf_counter() - began)
        print(median(found), flush=True)


def main(rank: int, port: int, size: int, rows: int) -> None:
    """Join, measure if it is the first worker, and leave.

    Args:
        rank: of this worker.
        port: where the workers meet.
        size: features of each layer.
        rows: of a batch.
    """
    torch.set_num_threads(1)
    options = rpc.TensorPipeRpcBackendOptions(init_method=f"tcp://127.0.0.1:{port}")
    rpc.init_rpc(f"worker{rank}", rank=rank, world_size=2, rpc_backend_options=options)
    if rank == 0:
        measure(size, rows)
    rpc.shutdown()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
