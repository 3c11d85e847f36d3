"""A parameter server and two trainers: the server holds the model, each trainer has data of its own."""

import os
import threading

import torch
import torch.distributed.autograd as dist_autograd
import torch.distributed.rpc as rpc
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F
from torch import optim
from torch.distributed.optim import DistributedOptimizer

TRAINERS, STEPS = 2, 6
SERVER = "ps"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(6, 8)
        self.out = nn.Linear(8, 3)
        for i, parameter in enumerate(self.parameters()):
            values = torch.sin(torch.arange(parameter.numel(), dtype=torch.float64) + i)
            parameter.data = (0.3 * values).reshape(parameter.shape)

    def forward(self, x):
        return F.log_softmax(self.out(torch.relu(self.hidden(x))), dim=1)


class ParameterServer(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = Net()

    def forward(self, x):
        return self.model(x)

    def parameter_rrefs(self):
        return [rpc.RRef(parameter) for parameter in self.model.parameters()]


_server = None
_lock = threading.Lock()


def get_server():
    global _server
    with _lock:
        if _server is None:
            _server = ParameterServer()
    return _server


def call_method(method, rref, *args):
    return method(rref.local_value(), *args)


class TrainerNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.server = rpc.remote(SERVER, get_server)

    def forward(self, x):
        return rpc.rpc_sync(self.server.owner(), call_method, args=(ParameterServer.forward, self.server, x))

    def parameter_rrefs(self):
        return rpc.rpc_sync(self.server.owner(), call_method, args=(ParameterServer.parameter_rrefs, self.server))


def batch(rank, step):
    x = torch.cos(torch.arange(24).to(torch.float64) * (rank + 1) + step).reshape(4, 6)
    return x, (torch.arange(4) + rank) % 3


def train(rank):
    net = TrainerNet()
    optimizer = DistributedOptimizer(optim.SGD, net.parameter_rrefs(), lr=0.1)
    losses = []
    for step in range(STEPS):
        x, y = batch(rank, step)
        with dist_autograd.context() as context_id:
            loss = F.nll_loss(net(x), y)
            dist_autograd.backward(context_id, [loss])
            optimizer.step(context_id)
        losses.append(loss.item())
    return losses


def run(rank, world_size):
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ.setdefault("MASTER_PORT", "29511")
    name = SERVER if rank == 0 else f"trainer{rank}"
    rpc.init_rpc(name, rank=rank, world_size=world_size)
    if rank == 1:
        # One after the other, so that the losses are the same in each run.
        for other in range(1, world_size):
            for loss in rpc.rpc_sync(f"trainer{other}", train, args=(other,)):
                print("loss", repr(loss))
    rpc.shutdown()


if __name__ == "__main__":
    mp.spawn(run, args=(TRAINERS + 1,), nprocs=TRAINERS + 1, join=True)
