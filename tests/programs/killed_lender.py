"""worker0 has an array that the others fetch; worker2, which has a copy, kills itself when it is asked for a piece."""

import os
import signal

import numpy as np
from telegrad import rpc
from telegrad.rpc.buffers import fetch
from telegrad.rpc.extend import current_agent

LEND = 11  # number of the request
fetch.FETCH_PIECE_BYTES = 80_000
kept = []


def take(buffer):
    kept.append(buffer.fetch(timeout=60).numpy())
    return bool((kept[-1] == np.arange(100_000)).all())


def die_as_lender():
    current_agent().server.handlers[LEND] = lambda call: os.kill(os.getpid(), signal.SIGKILL)


rpc.init_rpc(rpc_backend_options=rpc.GrpcRpcBackendOptions(lanes=["tcp", "grpc"]))
if rpc.get_worker_info().id == 0:
    with rpc.Buffer(np.arange(100_000)) as buffer:
        buffer.seal()
        rpc.rpc_sync(2, take, (buffer,))
        rpc.rpc_sync(2, die_as_lender)
        print([rpc.rpc_sync(rank, take, (buffer,)) for rank in (1, 3)], flush=True)
    print("over", flush=True)
rpc.shutdown()
