"""Worker 0 sends 300 calls of 10 MiB to worker 1, which is slow or stopped, and prints what that cost both.

The arguments are a folder, in which the test makes files to say that it goes on, and worker 1's number of threads.
"""

import ctypes
import os
import sys
import threading
from pathlib import Path

import numpy as np
from telegrad import rpc
from telegrad.base.errors import RpcTimeoutError

FOLDER, THREADS = Path(sys.argv[1]), int(sys.argv[2])
MIB = 1 << 20
CALLS, SIZE, SECONDS = 300, 10 * MIB, 5.0
ran = 0


def memory():
    """Megabytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") // MIB


def take(array):
    global ran
    ran += 1
    wait_for(FOLDER / "continue")
    return array.nbytes


def state():
    return memory(), ran


def flood():
    payload = np.ones(SIZE, np.uint8)
    here, there = memory(), rpc.rpc_sync("b", memory)
    print("ready", flush=True)
    wait_for(FOLDER / "go")
    failures = []
    threads = [threading.Thread(target=call, args=(payload, failures)) for _ in range(CALLS)]
    peak = here
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive():
            thread.join(0.05)
            peak = max(peak, memory())
    ctypes.CDLL(None).malloc_trim(0)  # what the allocator keeps for later use does not count
    named = all("take on worker 'b'" in str(failure) for failure in failures)
    print(f"timed-out {len(failures)} named {named} peak {peak - here} after {memory() - here}", flush=True)
    wait_for(FOLDER / "continue")
    size, count = rpc.rpc_sync("b", state, timeout=60)
    print(f"there {size - there} ran {count}", flush=True)


def call(payload, failures):
    try:
        rpc.rpc_sync("b", take, (payload,), timeout=SECONDS)
    except RpcTimeoutError as error:
        failures.append(error)


def wait_for(path):
    while not path.exists():
        threading.Event().wait(0.02)


def main():
    rank = int(os.environ["RANK"])
    # A peer that is stopped must not be lost meanwhile.
    options = rpc.GrpcRpcBackendOptions(num_worker_threads=THREADS, keepalive=60.0, reconnect_timeout=60.0)
    rpc.init_rpc("ab"[rank], rank=rank, world_size=2, rpc_backend_options=options)
    if rank == 0:
        flood()
    rpc.shutdown()


if __name__ == "__main__":
    main()
