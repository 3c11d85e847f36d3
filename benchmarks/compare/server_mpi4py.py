"""A parameter server and two trainers, by mpi4py: MPI has messages and no calls."""

import json
import time

import numpy as np
from mpi4py import MPI

STEPS, SIZE, RATE = 100, 10_000, 0.1
WORLD = MPI.COMM_WORLD


def serve() -> None:
    """Take a step for each gradient, and send the new weights back, until both trainers have ended."""
    weights, gradient = np.zeros(SIZE, np.float32), np.empty(SIZE, np.float32)
    status = MPI.Status()
    for _ in range((STEPS + 1) * (WORLD.size - 1)):
        WORLD.Recv(gradient, status=status)
        weights -= RATE * gradient
        WORLD.Send(weights, dest=status.source)
    times = WORLD.gather(0.0)
    print(json.dumps({"result": round(float(weights.mean()), 3), "seconds": max(times or [])}))


def train() -> None:
    """Push gradients."""
    weights = np.zeros(SIZE, np.float32)
    WORLD.Sendrecv(np.zeros(SIZE, np.float32), dest=0, recvbuf=weights, source=0)
    began = time.perf_counter()
    for _ in range(STEPS):
        WORLD.Sendrecv(weights - 1, dest=0, recvbuf=weights, source=0)
    WORLD.gather((time.perf_counter() - began) / STEPS)


if __name__ == "__main__":
    serve() if WORLD.rank == 0 else train()
