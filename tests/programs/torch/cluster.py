"""A class that starts workers and calls them, as people write for notebooks."""

import os

import torch
import torch.distributed.rpc as rpc
import torch.multiprocessing as mp


def serve(rank, world_size, port):
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = port
    rpc.init_rpc(f"worker{rank}", rank=rank, world_size=world_size)
    rpc.shutdown()


class Shard:
    """A part of the rows of a linear regression, with its gradient."""

    def __init__(self, number, count):
        rows = torch.linspace(-1, 1, 24, dtype=torch.float64).reshape(12, 2)[number::count]
        self.x, self.y = rows, rows.sum(1) ** 2

    def gradient(self, weight):
        weight = weight.detach().requires_grad_()
        loss = ((self.x @ weight - self.y) ** 2).sum()
        (gradient,) = torch.autograd.grad(loss, weight)
        return loss.detach(), gradient


class Cluster:
    def __init__(self, size, port):
        self.size = size
        context = mp.get_context("spawn")
        self.processes = [context.Process(target=serve, args=(rank, size + 1, port)) for rank in range(1, size + 1)]
        for process in self.processes:
            process.start()
        os.environ["MASTER_ADDR"] = "127.0.0.1"
        os.environ["MASTER_PORT"] = port
        rpc.init_rpc("master", rank=0, world_size=size + 1)
        self.shards = [rpc.remote(f"worker{rank}", Shard, args=(rank - 1, size)) for rank in range(1, size + 1)]

    def step(self, weight):
        futures = [shard.rpc_async().gradient(weight) for shard in self.shards]
        results = [future.wait() for future in futures]
        return sum(loss for loss, _ in results), sum(gradient for _, gradient in results)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        del self.shards
        rpc.shutdown()
        for process in self.processes:
            process.join()
            assert process.exitcode == 0


if __name__ == "__main__":
    with Cluster(2, os.environ.get("MASTER_PORT", "29518")) as cluster:
        weight = torch.zeros(2, dtype=torch.float64)
        for _ in range(5):
            loss, gradient = cluster.step(weight)
            weight = weight - 0.05 * gradient
            print("loss", repr(loss.item()))
