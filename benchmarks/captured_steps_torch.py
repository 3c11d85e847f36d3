"""PyTorch's part of the benchmark of captured steps: one of the workers. The first reads numbers of steps and prints times.

It is run by an interpreter that has PyTorch: ``python captured_steps_torch.py RANK PORT FEATURES ROWS HOPS``.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
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


class TorchServer:
    """A parameter server of two layers.

    Args:
        parameters: of the layers.
    """

    def __init__(self, parameters: list[Any]) -> None:
        self._parameters = parameters

    def step(self, *gradients: Any) -> list[Any]:
        """Make a step of SGD with the gradients of all parameters, and return these."""
        for parameter, gradient in zip(self._parameters, gradients):
            parameter.sub_(gradient, alpha=0.01)
        return self._parameters


def make_step(size: int, hops: int) -> Callable[[Any, Any], None]:
    """Return a step of a model of several workers.

    Args:
        size: features of each layer.
        hops: how many workers have layers, each of which gets the results of the one before.
    """
    remotes = [RemoteModule(f"worker{rank}/cpu", TorchLayers, args=(size,)) for rank in range(1, hops + 1)]
    first, last = torch.nn.Linear(size, size), torch.nn.Linear(size, 1)
    parameters = [rpc.RRef(each) for layer in (first, last) for each in layer.parameters()]
    parameters += [each for remote in remotes for each in remote.remote_parameters()]
    optimizer = DistributedOptimizer(torch.optim.SGD, parameters, lr=0.01)

    def step(x: Any, y: Any) -> None:
        with dist_autograd.context() as context:
            x = first(x).tanh()
            for remote in remotes:
                x = remote(x)
            dist_autograd.backward(context, [(last(x) - y).square().mean()])
            optimizer.step(context)

    return step


def make_trainer(size: int) -> Callable[[Any, Any], None]:
    """Return a step of a trainer whose parameters a server has, too.

    Args:
        size: features of each layer.
    """
    model = torch.nn.Sequential(torch.nn.Linear(size, size), torch.nn.Tanh(), torch.nn.Linear(size, 1))
    own = list(model.parameters())
    server = rpc.remote("worker1", TorchServer, args=([each.detach().clone() for each in own],))

    def step(x: Any, y: Any) -> None:
        (model(x) - y).square().mean().backward()
        fresh = server.rpc_sync().step(*[each.grad for each in own])
        with torch.no_grad():
            for parameter, value in zip(own, fresh):
                parameter.copy_(value)
                parameter.grad = None

    return step


def measure(size: int, rows: int, hops: int) -> None:
    """Answer each number of steps in the input with the median time of one, in seconds."""
    step = make_step(size, hops) if hops else make_trainer(size)
    x, y = torch.randn(rows, size), torch.randn(rows, 1)
    for line in sys.stdin:
        found = []
        for _ in range(int(line)):
            began = time.perf_counter()
            step(x, y)
            found.append(time.perf_counter() - began)
        print(median(found), flush=True)


def main(rank: int, port: int, size: int, rows: int, hops: int) -> None:
    """Join, measure if it is the first worker, and leave.

    Args:
        rank: of this worker.
        port: where the workers meet.
        size: features of each layer.
        rows: of a batch.
        hops: how many other workers have layers; 0 for a parameter server on one.
    """
    torch.set_num_threads(1)
    options = rpc.TensorPipeRpcBackendOptions(init_method=f"tcp://127.0.0.1:{port}")
    rpc.init_rpc(f"worker{rank}", rank=rank, world_size=max(hops, 1) + 1, rpc_backend_options=options)
    if rank == 0:
        measure(size, rows, hops)
    rpc.shutdown()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
