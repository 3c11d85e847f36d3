"""Split learning: two clients keep their data and the lower half of the network, a server has the upper half."""

import copy
import os

import torch
import torch.distributed.autograd as dist_autograd
import torch.distributed.rpc as rpc
import torch.multiprocessing as mp
import torch.nn as nn
from torch.distributed.optim import DistributedOptimizer

CLIENTS, ROUNDS = 2, 3


def halves():
    lower = nn.Sequential(nn.Linear(5, 7), nn.Sigmoid())
    upper = nn.Sequential(nn.Linear(7, 7), nn.LeakyReLU(), nn.Linear(7, 3))
    for half in (lower, upper):
        half.to(torch.float64)
        for i, parameter in enumerate(half.parameters()):
            values = torch.sin(torch.arange(parameter.numel(), dtype=torch.float64) * (i + 1))
            parameter.data.copy_(0.4 * values.reshape(parameter.shape))
    return lower, upper


class Server:
    def __init__(self):
        self.upper = halves()[1]

    def forward(self, activations):
        return self.upper(activations)

    def parameters(self):
        return [rpc.RRef(parameter) for parameter in self.upper.parameters()]


class Client:
    def __init__(self, number, server):
        self.server = server
        self.lower = halves()[0]
        self.x = torch.sin(torch.arange(30, dtype=torch.float64) + number).reshape(6, 5)
        self.y = (torch.arange(6) * (number + 1)) % 3

    def weights(self):
        return copy.deepcopy(self.lower.state_dict())

    def load(self, weights):
        self.lower.load_state_dict(weights)

    def train(self, epochs):
        own = [rpc.RRef(parameter) for parameter in self.lower.parameters()]
        parameters = own + self.server.rpc_sync().parameters()
        optimizer = DistributedOptimizer(torch.optim.Adam, parameters, lr=0.02)
        losses = []
        for _ in range(epochs):
            with dist_autograd.context() as context_id:
                scores = self.server.rpc_sync().forward(self.lower(self.x))
                loss = nn.functional.cross_entropy(scores, self.y)
                dist_autograd.backward(context_id, [loss])
                optimizer.step(context_id)
            losses.append(loss.item())
        return losses


def run(rank, world_size):
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ.setdefault("MASTER_PORT", "29516")
    rpc.init_rpc(["server", "client1", "client2"][rank], rank=rank, world_size=world_size)
    if rank == 0:
        server = rpc.RRef(Server())
        clients = [rpc.remote(f"client{number}", Client, args=(number, server)) for number in range(1, world_size)]
        weights = None
        for _ in range(ROUNDS):
            for client in clients:
                if weights is not None:
                    client.rpc_sync().load(weights)
                for loss in client.rpc_sync(timeout=120).train(2):
                    print("loss", repr(loss))
                weights = client.rpc_sync().weights()
    rpc.shutdown()


if __name__ == "__main__":
    mp.spawn(run, args=(CLIENTS + 1,), nprocs=CLIENTS + 1, join=True)
