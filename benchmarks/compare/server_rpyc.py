"""A parameter server and two trainers, by RPyC."""

import json
import threading
import time
from multiprocessing import Process, Queue
from typing import Any

import numpy as np
import rpyc
from rpyc.utils.server import ThreadedServer

STEPS, SIZE, RATE = 100, 10_000, 0.1


class Server(rpyc.Service):
    """Owner of the weights, one for all connections. Arrays travel as bytes: an array would be a reference."""

    def __init__(self) -> None:
        self.weights, self.lock = np.zeros(SIZE, np.float32), threading.Lock()

    def exposed_push(self, gradient: bytes) -> bytes:
        """Take a step, and return the new weights."""
        with self.lock:
            self.weights = self.weights - np.float32(RATE) * np.frombuffer(gradient, np.float32)
            return self.weights.tobytes()


def serve(ports: Any) -> None:
    """Serve at a free port, and tell it when clients may connect."""
    server = ThreadedServer(Server(), hostname="127.0.0.1", port=0)
    thread = threading.Thread(target=server.start)
    thread.start()
    while not server.active:
        time.sleep(0.01)
    for _ in range(3):
        ports.put(server.port)
    thread.join()


def train(ports: Any, times: Any) -> None:
    """Push gradients, and tell the seconds of a step."""
    server = rpyc.connect("127.0.0.1", ports.get()).root
    weights = np.frombuffer(server.push(bytes(4 * SIZE)), np.float32)
    began = time.perf_counter()
    for _ in range(STEPS):
        weights = np.frombuffer(server.push((weights - 1).tobytes()), np.float32)
    times.put((time.perf_counter() - began) / STEPS)


if __name__ == "__main__":
    ports: Any = Queue()
    times: Any = Queue()
    Process(target=serve, args=(ports,), daemon=True).start()
    for _ in range(2):
        Process(target=train, args=(ports, times)).start()
    slowest = max(times.get(), times.get())
    weights = np.frombuffer(rpyc.connect("127.0.0.1", ports.get()).root.push(bytes(4 * SIZE)), np.float32)
    print(json.dumps({"result": round(float(weights.mean()), 3), "seconds": slowest}))
