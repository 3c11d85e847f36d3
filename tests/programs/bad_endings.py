"""Worker 0 calls functions that end their process, or try to ("exits"); or worker 1 has another protocol ("versions")."""

import os
import sys

from telegrad import rpc
from telegrad.base.errors import RemoteError, WorkerLostError
from telegrad.rpc.security import handshake as security

what, rank = sys.argv[1], int(os.environ["RANK"])


def interrupt():
    raise KeyboardInterrupt


def exits():
    for function, args in ((sys.exit, (3,)), (interrupt, ())):
        try:
            rpc.rpc_sync("w1", function, args)
        except RemoteError as error:
            print(error, flush=True)
    assert rpc.rpc_sync("w1", abs, (-5,)) == 5, "it goes on"
    try:
        rpc.rpc_sync("w1", os._exit, (3,))
    except WorkerLostError as error:
        print(f"lost {error.worker}: {error}", flush=True)


if what == "versions" and rank == 1:
    security.PROTOCOL += 1
try:
    rpc.init_rpc(f"w{rank}", rpc_backend_options=rpc.GrpcRpcBackendOptions(init_timeout=5.0, reconnect_timeout=2.0))
except Exception as error:
    print(f"{type(error).__name__}: {error}", flush=True)
    sys.exit(9)
if rank == 0:
    exits()
rpc.shutdown(timeout=20)
