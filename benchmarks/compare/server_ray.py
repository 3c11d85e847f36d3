"""A parameter server and two trainers, by Ray."""

import json
import time
from typing import Any

import numpy as np
import numpy.typing as npt
import ray

STEPS, SIZE, RATE = 100, 10_000, 0.1
Array = npt.NDArray[np.float32]


@ray.remote
class Server:
    """Owner of the weights; an actor runs one method at a time."""

    def __init__(self) -> None:
        self.weights = np.zeros(SIZE, np.float32)

    def push(self, gradient: Array) -> Array:
        """Take a step, and return the new weights."""
        self.weights = self.weights - RATE * gradient
        return self.weights


@ray.remote
def train(server: Any) -> float:
    """Push gradients, and return the seconds of a step."""
    weights = ray.get(server.push.remote(np.zeros(SIZE, np.float32)))
    began = time.perf_counter()
    for _ in range(STEPS):
        weights = ray.get(server.push.remote(weights - 1))
    return (time.perf_counter() - began) / STEPS


if __name__ == "__main__":
    ray.init(log_to_driver=False, num_cpus=4)
    server = Server.remote()
    times = ray.get([train.remote(server) for _ in range(2)])
    result = round(float(ray.get(server.push.remote(np.zeros(SIZE, np.float32))).mean()), 3)
    print(json.dumps({"result": result, "seconds": max(times)}))
