"""A network of two stages on two workers; micro-batches go through them side by side."""

import os
import threading

import torch
import torch.distributed.autograd as dist_autograd
import torch.distributed.rpc as rpc
import torch.multiprocessing as mp
import torch.nn as nn
import torch.optim as optim
from torch.distributed.optim import DistributedOptimizer
from torch.distributed.rpc import RRef

STEPS = 4


def fill(module):
    with torch.no_grad():
        for i, parameter in enumerate(module.parameters()):
            parameter.copy_(0.3 * torch.cos(torch.arange(parameter.numel()).to(parameter.dtype) + i).view_as(parameter))
    return module


class Stage(nn.Module):
    def __init__(self, *layers):
        super().__init__()
        self._lock = threading.Lock()
        self.sequence = fill(nn.Sequential(*layers).double())

    def forward(self, x_rref):
        x = x_rref.to_here().to("cpu")
        with self._lock:
            out = self.sequence(x)
        return out.cpu()

    def parameter_rrefs(self):
        return [RRef(p) for p in self.parameters()]


class Stage1(Stage):
    def __init__(self):
        super().__init__(nn.Conv2d(1, 3, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))


class Stage2(Stage):
    def __init__(self):
        super().__init__(nn.Conv2d(3, 4, 3), nn.Tanh(), nn.Flatten(), nn.Linear(16, 5))


class Pipeline(nn.Module):
    def __init__(self, split, workers):
        super().__init__()
        self.split = split
        self.first = rpc.remote(workers[0], Stage1)
        self.second = rpc.remote(workers[1], Stage2)

    def forward(self, xs):
        futures = []
        for x in iter(xs.split(self.split, dim=0)):
            y_rref = self.first.remote().forward(RRef(x))
            futures.append(self.second.rpc_async().forward(y_rref))
        return torch.cat(torch.futures.wait_all(futures))

    def parameter_rrefs(self):
        return [*self.first.remote().parameter_rrefs().to_here(), *self.second.remote().parameter_rrefs().to_here()]


def run_master():
    model = Pipeline(3, ["worker1", "worker2"])
    loss_fn = nn.MSELoss()
    optimizer = DistributedOptimizer(optim.SGD, model.parameter_rrefs(), lr=0.2)
    inputs = torch.sin(torch.arange(12 * 64, dtype=torch.float64)).reshape(12, 1, 8, 8)
    labels = nn.functional.one_hot(torch.arange(12) % 5, 5).to(torch.float64)
    for _ in range(STEPS):
        with dist_autograd.context() as context_id:
            loss = loss_fn(model(inputs), labels)
            dist_autograd.backward(context_id, [loss])
            optimizer.step(context_id)
        print("loss", repr(loss.item()))


def run_worker(rank, world_size):
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ.setdefault("MASTER_PORT", "29514")
    options = rpc.TensorPipeRpcBackendOptions(num_worker_threads=32, rpc_timeout=60)
    name = "master" if rank == 0 else f"worker{rank}"
    rpc.init_rpc(name, rank=rank, world_size=world_size, rpc_backend_options=options)
    if rank == 0:
        run_master()
    rpc.shutdown()


if __name__ == "__main__":
    mp.spawn(run_worker, args=(3,), nprocs=3, join=True)
