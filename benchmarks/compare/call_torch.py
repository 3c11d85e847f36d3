"""A remote call with a result, by PyTorch RPC."""

import json
import operator
import os
import time

import torch.distributed.rpc as rpc

CALLS = 1000

if __name__ == "__main__":
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    rpc.init_rpc(f"worker{rank}", rank=rank, world_size=size)
    if rank == 0:
        result = rpc.rpc_sync("worker1", operator.add, (2, 3))
        began = time.perf_counter()
        for _ in range(CALLS):
            rpc.rpc_sync("worker1", operator.add, (2, 3))
        print(json.dumps({"result": result, "seconds": (time.perf_counter() - began) / CALLS}))
    rpc.shutdown()
