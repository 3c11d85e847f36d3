"""A worker that dies in the middle of a call, by mpi4py."""

import json
import os
import signal
import time

from mpi4py import MPI
from mpi4py.futures import MPICommExecutor


def die() -> None:
    """Kill this worker after a moment."""
    time.sleep(0.5)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    with MPICommExecutor(MPI.COMM_WORLD, root=0) as executor:
        if executor is not None:
            began = time.perf_counter()
            try:
                executor.submit(die).result()
            except Exception as error:
                seconds = time.perf_counter() - began - 0.5
                others = executor.submit(abs, -7).result()
                line = {"error": f"{type(error).__name__}: {error}", "seconds": seconds, "others": others}
                print(json.dumps(line), flush=True)
