"""A parameter server and two trainers, by Monarch."""

import json
import time
from typing import Any

import torch
from monarch.actor import Actor, endpoint, this_host

STEPS, SIZE, RATE = 100, 10_000, 0.1


class Server(Actor):
    """Owner of the weights; an actor runs one endpoint at a time."""

    def __init__(self) -> None:
        self.weights = torch.zeros(SIZE)

    @endpoint
    def push(self, gradient: torch.Tensor) -> torch.Tensor:
        """Take a step, and return the new weights."""
        self.weights = self.weights - RATE * gradient
        return self.weights


class Trainer(Actor):
    """Actor that pushes gradients."""

    @endpoint
    async def train(self, server: Any) -> float:
        """Push gradients, and return the seconds of a step."""
        weights = await server.push.call_one(torch.zeros(SIZE))
        began = time.perf_counter()
        for _ in range(STEPS):
            weights = await server.push.call_one(weights - 1)
        return (time.perf_counter() - began) / STEPS


def main() -> None:
    """Train, and print the result and the time of a step."""
    server = this_host().spawn_procs({"gpus": 1}).spawn("server", Server)
    trainers = this_host().spawn_procs({"gpus": 2}).spawn("trainers", Trainer)
    times = [seconds for _, seconds in trainers.train.call(server).get().items()]
    result = round(server.push.call_one(torch.zeros(SIZE)).get().mean().item(), 3)
    print(json.dumps({"result": result, "seconds": max(times)}), flush=True)


if __name__ == "__main__":
    main()
