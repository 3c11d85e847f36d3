"""A data loader that is made at one worker and sent to another, which trains with it."""

import os

import torch
import torch.distributed.rpc as rpc
import torch.multiprocessing as mp
from torch import nn
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, Dataset, TensorDataset


class Squares(Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        x = torch.tensor([index / self.count], dtype=torch.float64)
        return x, x * x


def train(loader, epochs):
    model = nn.Sequential(nn.Linear(1, 6), nn.Tanh(), nn.Linear(6, 1)).double()
    for i, parameter in enumerate(model.parameters()):
        nn.init.constant_(parameter, 0.1 * (i + 1))
    model[0].weight.data += torch.linspace(-1, 1, 6, dtype=torch.float64).unsqueeze(1)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=0.01)
    scheduler = StepLR(optimizer, step_size=1, gamma=0.5)
    losses = []
    for _ in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
        scheduler.step()
        losses.append(loss.item())
    return losses


def run(rank, world_size):
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ.setdefault("MASTER_PORT", "29517")
    rpc.init_rpc(f"worker{rank}", rank=rank, world_size=world_size)
    if rank == 0:
        x = torch.linspace(0, 1, 10, dtype=torch.float64).reshape(-1, 1)
        loaders = DataLoader(Squares(12), batch_size=4), DataLoader(TensorDataset(x, x.exp()), batch_size=5)
        for loader in loaders:
            for loss in rpc.rpc_async("worker1", train, args=(loader, 3)).wait():
                print("loss", repr(loss))
    rpc.shutdown()


if __name__ == "__main__":
    mp.spawn(run, args=(2,), nprocs=2, join=True)
