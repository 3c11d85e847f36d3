"""A worker that dies in the middle of a call, by RPyC."""

import json
import os
import signal
import threading
import time
from multiprocessing import Process, Queue
from typing import Any

import rpyc
from rpyc.utils.server import ThreadedServer


class Worker(rpyc.Service):
    """Service that dies when it is asked to."""

    def exposed_die(self) -> None:
        """Kill this worker after a moment."""
        time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGKILL)

    def exposed_abs(self, number: int) -> int:
        """Return the magnitude."""
        return abs(number)


def serve(ports: Any) -> None:
    """Serve at a free port, and tell it when clients may connect."""
    server = ThreadedServer(Worker, hostname="127.0.0.1", port=0)
    thread = threading.Thread(target=server.start)
    thread.start()
    while not server.active:
        time.sleep(0.01)
    ports.put(server.port)
    thread.join()


if __name__ == "__main__":
    ports: Any = Queue()
    for _ in range(2):
        Process(target=serve, args=(ports,), daemon=True).start()
    first, second = (rpyc.connect("127.0.0.1", ports.get()).root for _ in range(2))
    began = time.perf_counter()
    try:
        first.die()
    except EOFError as error:
        seconds = time.perf_counter() - began - 0.5
        line = {"error": f"{type(error).__name__}: {error}", "seconds": seconds, "others": second.abs(-7)}
        print(json.dumps(line))
