"""A language model whose embedding and decoder live on a server, and whose LSTM lives at the trainer."""

import os

import torch
import torch.distributed.autograd as dist_autograd
import torch.distributed.rpc as rpc
import torch.multiprocessing as mp
import torch.nn as nn
import torch.optim as optim
from torch.distributed.optim import DistributedOptimizer
from torch.distributed.rpc import RRef

TOKENS, SIZE, LENGTH, BATCH, STEPS = 11, 8, 5, 3, 5
SERVER, TRAINER = "ps", "trainer"


def fill(module):
    for i, parameter in enumerate(module.parameters()):
        values = 0.2 * torch.sin(torch.arange(parameter.numel(), dtype=torch.float64) * 0.7 + i)
        parameter.data = values.reshape(parameter.shape)
    return module


def _call_method(method, rref, *args, **kwargs):
    return method(rref.local_value(), *args, **kwargs)


def _remote_method(method, rref, *args, **kwargs):
    return rpc.rpc_sync(rref.owner(), _call_method, args=[method, rref, *args], kwargs=kwargs)


def _parameter_rrefs(module):
    return [RRef(parameter) for parameter in module.parameters()]


class EmbeddingTable(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = fill(nn.Embedding(TOKENS, SIZE))

    def forward(self, tokens):
        return self.encoder(tokens)


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.decoder = fill(nn.Linear(SIZE, TOKENS))

    def forward(self, hidden):
        return self.decoder(hidden)


class RNNModel(nn.Module):
    def __init__(self, server):
        super().__init__()
        self.embedding = rpc.remote(server, EmbeddingTable)
        self.rnn = fill(nn.LSTM(SIZE, SIZE, 2))
        self.decoder = rpc.remote(server, Decoder)

    def forward(self, tokens, hidden):
        embedded = _remote_method(EmbeddingTable.forward, self.embedding, tokens)
        output, hidden = self.rnn(embedded, hidden)
        return _remote_method(Decoder.forward, self.decoder, output), hidden

    def parameter_rrefs(self):
        remote = [*_remote_method(_parameter_rrefs, self.embedding), *_remote_method(_parameter_rrefs, self.decoder)]
        return remote + _parameter_rrefs(self.rnn)


def train():
    model = RNNModel(SERVER)
    optimizer = DistributedOptimizer(optim.SGD, model.parameter_rrefs(), lr=0.5)
    criterion = nn.CrossEntropyLoss()
    hidden = tuple(torch.zeros(2, BATCH, SIZE, dtype=torch.float64) for _ in range(2))
    for step in range(STEPS):
        tokens = (torch.arange(LENGTH * BATCH).reshape(LENGTH, BATCH) + step) % TOKENS
        with dist_autograd.context() as context_id:
            hidden = tuple(part.detach() for part in hidden)
            output, hidden = model(tokens, hidden)
            loss = criterion(output.reshape(-1, TOKENS), ((tokens + 1) % TOKENS).reshape(-1))
            dist_autograd.backward(context_id, [loss])
            optimizer.step(context_id)
        print("loss", repr(loss.item()))


def run(rank, world_size):
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ.setdefault("MASTER_PORT", "29512")
    if rank == 1:
        rpc.init_rpc(TRAINER, rank=rank, world_size=world_size)
        train()
    else:
        rpc.init_rpc(SERVER, rank=rank, world_size=world_size)
    rpc.shutdown()


if __name__ == "__main__":
    mp.spawn(run, args=(2,), nprocs=2, join=True)
