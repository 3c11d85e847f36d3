"""One worker that meets others: arguments name, rank, world size, init method (or -), time-out. Prints how it went.

With a further argument, "together", it says that it is ready, and waits for a line before it begins: the time-outs of all then
count from one instant, however long each took to import telegrad.
"""

import sys
import time

from telegrad import rpc

name, rank, world_size, method, seconds = sys.argv[1:6]
options = rpc.GrpcRpcBackendOptions(init_timeout=float(seconds), reconnect_timeout=1.0)
if method != "-":
    options.init_method = method
if sys.argv[6:]:
    print("ready", flush=True)
    input()
began = time.monotonic()
try:
    rpc.init_rpc(
        name, rank=int(rank), world_size=None if world_size == "-" else int(world_size), rpc_backend_options=options
    )
except Exception as error:
    print(f"{type(error).__name__}: {error}", flush=True)
    assert time.monotonic() - began < float(seconds) + 5, "that took too long"
    sys.exit(9)
print("met", sorted(rpc.debug_info()["peers"]), flush=True)
rpc.shutdown(timeout=20)
print("over", flush=True)
