"""A parameter server and two trainers, by Telegrad."""

import json
import threading
import time

import numpy as np
import numpy.typing as npt
from telegrad import rpc

STEPS, SIZE, RATE = 100, 10_000, 0.1
Array = npt.NDArray[np.float32]


class Server:
    """Owner of the weights."""

    def __init__(self) -> None:
        self.weights, self.lock = np.zeros(SIZE, np.float32), threading.Lock()

    def push(self, gradient: Array) -> Array:
        """Take a step, and return the new weights."""
        with self.lock:
            self.weights = self.weights - RATE * gradient
            return self.weights


def train(server: "rpc.RRef[Server]") -> float:
    """Push gradients, and return the seconds of a step."""
    weights = server.rpc_sync().push(np.zeros(SIZE, np.float32))
    began = time.perf_counter()
    for _ in range(STEPS):
        weights = server.rpc_sync().push(weights - 1)
    return (time.perf_counter() - began) / STEPS


if __name__ == "__main__":
    rpc.init_rpc()
    if rpc.get_worker_info().name == "worker0":
        server = rpc.RRef(Server())
        times = [each.wait() for each in [rpc.rpc_async(f"worker{n}", train, (server,)) for n in (1, 2)]]
        result = round(float(server.local_value().weights.mean()), 3)
        print(json.dumps({"result": result, "seconds": max(times)}))
    rpc.shutdown()
