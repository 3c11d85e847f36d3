"""A worker that dies in the middle of a call, by Telegrad."""

import json
import os
import signal
import time

from telegrad import rpc
from telegrad.errors import WorkerLostError
from telegrad.launcher import local_cluster


def die() -> None:
    """Kill this worker after a moment."""
    time.sleep(0.5)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    with local_cluster(2):
        began = time.perf_counter()
        try:
            rpc.rpc_sync("worker0", die)
        except WorkerLostError as error:
            seconds = time.perf_counter() - began - 0.5
            others = rpc.rpc_sync("worker1", abs, (-7,))
            print(json.dumps({"error": f"{type(error).__name__}: {error}", "seconds": seconds, "others": others}))
