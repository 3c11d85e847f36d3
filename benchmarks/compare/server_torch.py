"""A parameter server and two trainers, by PyTorch RPC."""

import json
import os
import threading
import time
from typing import Any

import torch
import torch.distributed.rpc as rpc

STEPS, SIZE, RATE = 100, 10_000, 0.1


class Server:
    """Owner of the weights."""

    def __init__(self) -> None:
        self.weights, self.lock = torch.zeros(SIZE), threading.Lock()

    def push(self, gradient: torch.Tensor) -> torch.Tensor:
        """Take a step, and return the new weights."""
        with self.lock:
            self.weights = self.weights - RATE * gradient
            return self.weights


def train(server: Any) -> float:
    """Push gradients, and return the seconds of a step."""
    weights = server.rpc_sync().push(torch.zeros(SIZE))
    began = time.perf_counter()
    for _ in range(STEPS):
        weights = server.rpc_sync().push(weights - 1)
    return (time.perf_counter() - began) / STEPS


if __name__ == "__main__":
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    rpc.init_rpc(f"worker{rank}", rank=rank, world_size=size)
    if rank == 0:
        server = rpc.RRef(Server())
        times = [each.wait() for each in [rpc.rpc_async(f"worker{n}", train, (server,)) for n in (1, 2)]]
        result = round(server.local_value().weights.mean().item(), 3)
        print(json.dumps({"result": result, "seconds": max(times)}))
    rpc.shutdown()
