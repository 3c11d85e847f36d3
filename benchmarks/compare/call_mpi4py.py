"""A remote call with a result, by mpi4py."""

import json
import operator
import time

from mpi4py import MPI
from mpi4py.futures import MPICommExecutor

CALLS = 1000

if __name__ == "__main__":
    with MPICommExecutor(MPI.COMM_WORLD, root=0) as executor:
        if executor is not None:
            result = executor.submit(operator.add, 2, 3).result()
            began = time.perf_counter()
            for _ in range(CALLS):
                executor.submit(operator.add, 2, 3).result()
            print(json.dumps({"result": result, "seconds": (time.perf_counter() - began) / CALLS}))
