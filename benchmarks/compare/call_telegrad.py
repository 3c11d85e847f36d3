"""A remote call with a result, by Telegrad."""

import json
import operator
import time

from telegrad import rpc

CALLS = 1000

if __name__ == "__main__":
    rpc.init_rpc()
    if rpc.get_worker_info().name == "worker0":
        result = rpc.rpc_sync("worker1", operator.add, (2, 3))
        began = time.perf_counter()
        for _ in range(CALLS):
            rpc.rpc_sync("worker1", operator.add, (2, 3))
        print(json.dumps({"result": result, "seconds": (time.perf_counter() - began) / CALLS}))
    rpc.shutdown()
