"""A worker that dies in the middle of a call, by PyTorch RPC."""

import json
import os
import signal
import time

import torch.distributed.rpc as rpc


def die() -> None:
    """Kill this worker after a moment."""
    time.sleep(0.5)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    rpc.init_rpc(f"worker{rank}", rank=rank, world_size=size)
    if rank == 0:
        began = time.perf_counter()
        try:
            rpc.rpc_sync("worker1", die)
        except RuntimeError as error:
            seconds = time.perf_counter() - began - 0.5
            others = rpc.rpc_sync("worker2", abs, (-7,))
            line = {"error": f"{type(error).__name__}: {error}", "seconds": seconds, "others": others}
            print(json.dumps(line), flush=True)
    rpc.shutdown()
