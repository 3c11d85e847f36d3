"""Draw the pictures of contexts in the README and in ``docs/distributed-autograd.md``: running this file writes them here."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import telegrad as tg
from telegrad import autograd_dist, rpc
from telegrad.testing import in_process_cluster

FOLDER = Path(__file__).parent


class Layer:
    """Layer with a weight, on the worker that makes it."""

    def __init__(self, rows: int, columns: int) -> None:
        self.weight = tg.tensor(np.full((rows, columns), 0.5), requires_grad=True)

    def forward(self, values: tg.Tensor) -> tg.Tensor:
        """Return the layer's output."""
        return tg.tanh(values @ self.weight)

    def forward_and_size(self, values: tg.Tensor) -> tuple[tg.Tensor, tg.Tensor]:
        """Return the layer's output, and a penalty that a caller may leave out."""
        return self.forward(values), (self.weight * self.weight).sum()

    def weight_rref(self) -> tg.RRef:
        """Return a reference to the weight."""
        return tg.RRef(self.weight)


def chain(folder: Path) -> None:
    """Draw a forward through two servers, one after the other."""
    with (
        rpc.remote("server1", Layer, (3, 4)) as first,
        rpc.remote("server2", Layer, (4, 2)) as second,
        autograd_dist.context() as context,
    ):
        loss = second.rpc_sync().forward(first.rpc_sync().forward(tg.ones(5, 3, dtype="float64"))).sum()
        names = {"weight 1": first.rpc_sync().weight_rref(), "weight 2": second.rpc_sync().weight_rref()}
        autograd_dist.draw(context, folder / "chain.svg", names, [loss])
        autograd_dist.backward(context, [loss])


def unused(folder: Path) -> None:
    """Draw a forward of whose results one is used in part, and one not at all."""
    with rpc.remote("server1", Layer, (3, 4)) as first, rpc.remote("server2", Layer, (3, 4)) as second:
        inputs = tg.ones(5, 3, dtype="float64", requires_grad=True)
        with autograd_dist.context() as context:
            output, _ = first.rpc_sync().forward_and_size(inputs)
            second.rpc_sync().forward(inputs)
            loss = output.sum()
            names = {"inputs": inputs, "weight 1": first.rpc_sync().weight_rref()}
            names["weight 2"] = second.rpc_sync().weight_rref()
            autograd_dist.draw(context, folder / "unused.svg", names, [loss])
            autograd_dist.backward(context, [loss])
            assert inputs in autograd_dist.get_gradients(context)


def hello(folder: Path) -> None:
    """Draw the first program of the README."""
    weight = tg.ones(3, requires_grad=True)
    with autograd_dist.context() as context:
        loss = rpc.rpc_sync("worker1", lambda tensor, factor: tensor * factor, args=(weight, 2.0)).sum()
        autograd_dist.draw(context, folder / "hello.svg", {"weight": weight}, [loss])
        autograd_dist.backward(context, [loss])


def draw_all(folder: Path = FOLDER) -> None:
    """Draw all pictures into a folder."""
    with in_process_cluster("trainer", "server1", "server2") as agents, agents[0].use():
        chain(folder)
        unused(folder)
    with in_process_cluster("worker0", "worker1") as agents, agents[0].use():
        hello(folder)


if __name__ == "__main__":
    draw_all()
