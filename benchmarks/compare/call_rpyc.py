"""A remote call with a result, by RPyC."""

import json
import threading
import time
from multiprocessing import Process, Queue
from typing import Any

import rpyc
from rpyc.utils.server import ThreadedServer

CALLS = 1000


class Worker(rpyc.Service):
    """Service that adds."""

    def exposed_add(self, a: int, b: int) -> int:
        """Return the sum."""
        return a + b


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
    Process(target=serve, args=(ports,), daemon=True).start()
    worker = rpyc.connect("127.0.0.1", ports.get()).root
    result = worker.add(2, 3)
    began = time.perf_counter()
    for _ in range(CALLS):
        worker.add(2, 3)
    print(json.dumps({"result": result, "seconds": (time.perf_counter() - began) / CALLS}))
