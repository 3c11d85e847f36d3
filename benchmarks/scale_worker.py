"""Program of every worker of ``benchmarks.scale``: joins, calls, waits at a barrier, ends; rank 0 writes how long each took.

It is run as ``scale_worker.py LIBRARY BEGAN FILE``, by each library's own launcher; it imports nothing else of ours.
"""

import importlib
import json
import os
import sys
import time

NEIGHBOURS = (1, 7, 31)


def echo(number: int) -> int:
    """Return the number."""
    return number


def share() -> float:
    """Return this process's share of memory, in MiB: pages that others map too are divided among them."""
    with open("/proc/self/smaps_rollup") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("Pss:")) / 1024


def barrier(size: int) -> None:
    """Wait for all workers."""
    names = {f"worker{rank}" for rank in range(size)}
    (rpc if hasattr(rpc, "_barrier") else rpc.api)._barrier(names)


def call_around(rank: int, size: int) -> None:
    """Call workers near and far at once."""
    futures = [rpc.rpc_async((rank + distance) % size, echo, args=(rank,)) for distance in NEIGHBOURS]
    assert [future.wait() for future in futures] == [rank] * len(futures)


def run(began: float, file: str) -> None:
    """Work, and write the times and the memory."""
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    rpc.init_rpc(f"worker{rank}", rank=rank, world_size=size)
    times = [began, time.time()]
    call_around(rank, size)
    barrier(size)
    times.append(time.time())
    barrier(size)
    times.append(time.time())
    if rank == 0:
        memory = sum(future.wait() for future in [rpc.rpc_async(other, share) for other in range(size)])
        names = ("start", "calls", "barrier")
        steps = {name: end - begin for name, begin, end in zip(names, times, times[1:])}
        with open(file, "w") as out:
            json.dump({**steps, "memory": memory, "until": time.time()}, out)
    rpc.shutdown()


if __name__ == "__main__":
    rpc = importlib.import_module({"telegrad": "telegrad.rpc", "torch": "torch.distributed.rpc"}[sys.argv[1]])
    run(float(sys.argv[2]), sys.argv[3])
