"""A parameter server that waits for the gradients of all trainers, and answers them together (async_execution)."""

import os
import threading

import torch
import torch.distributed.rpc as rpc
import torch.multiprocessing as mp
from torch import nn, optim

TRAINERS, STEPS = 2, 5


class BatchUpdateParameterServer:
    def __init__(self, batch_update_size):
        self.model = nn.Linear(4, 2).double()
        with torch.no_grad():
            for i, parameter in enumerate(self.model.parameters()):
                parameter.fill_(0.1 * (i + 1))
        self.lock = threading.Lock()
        self.future_model = torch.futures.Future()
        self.batch_update_size = batch_update_size
        self.count = 0
        self.optimizer = optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)
        for parameter in self.model.parameters():
            parameter.grad = torch.zeros_like(parameter)

    def get_model(self):
        return self.model

    @staticmethod
    @rpc.functions.async_execution
    def update_and_fetch_model(ps_rref, grads):
        self = ps_rref.local_value()
        with self.lock:
            self.count += 1
            for parameter, grad in zip(self.model.parameters(), grads):
                parameter.grad += grad
            future = self.future_model
            if self.count >= self.batch_update_size:
                for parameter in self.model.parameters():
                    parameter.grad /= self.batch_update_size
                self.count = 0
                self.optimizer.step()
                self.optimizer.zero_grad(set_to_none=False)
                future.set_result(self.model)
                self.future_model = torch.futures.Future()
        return future


class Trainer:
    def __init__(self, ps_rref):
        self.ps_rref = ps_rref
        self.loss_fn = nn.MSELoss()
        self.rank = rpc.get_worker_info().id

    def train(self):
        losses = []
        model = self.ps_rref.rpc_sync().get_model()
        for step in range(STEPS):
            inputs = torch.linspace(-1, self.rank, 12, dtype=torch.float64).reshape(3, 4) + 0.1 * step
            labels = torch.ones(3, 2, dtype=torch.float64)
            loss = self.loss_fn(model(inputs), labels)
            model.zero_grad()
            loss.backward()
            losses.append(loss.item())
            model = rpc.rpc_sync(
                self.ps_rref.owner(),
                BatchUpdateParameterServer.update_and_fetch_model,
                args=(self.ps_rref, [parameter.grad for parameter in model.parameters()]),
            )
        return losses


def run_trainer(ps_rref):
    return Trainer(ps_rref).train()


def run(rank, world_size):
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ.setdefault("MASTER_PORT", "29515")
    options = rpc.TensorPipeRpcBackendOptions(num_worker_threads=16, rpc_timeout=60)
    name = f"trainer{rank}" if rank else "ps"
    rpc.init_rpc(name, rank=rank, world_size=world_size, rpc_backend_options=options)
    if rank == 0:
        ps_rref = rpc.RRef(BatchUpdateParameterServer(TRAINERS))
        futures = [rpc.rpc_async(f"trainer{i}", run_trainer, args=(ps_rref,)) for i in range(1, world_size)]
        for losses in torch.futures.wait_all(futures):
            for loss in losses:
                print("loss", repr(loss))
        del ps_rref
    rpc.shutdown()


if __name__ == "__main__":
    mp.spawn(run, args=(TRAINERS + 1,), nprocs=TRAINERS + 1, join=True)
