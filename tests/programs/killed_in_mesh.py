"""worker0 calls seven others; worker6, which passes the call on to worker7, is killed before either has answered."""

import os
import signal
import time

from telegrad import rpc
from telegrad.base.errors import WorkerLostError

running = []


def name():
    return rpc.get_worker_info().name


def run():
    running.append(name())
    while name() == "worker6":
        time.sleep(1)
    while name() == "worker7" and "worker6" in rpc.mesh():
        time.sleep(0.01)
    return name(), len(running)


def runs():
    return bool(running)


rpc.init_rpc(rpc_backend_options=rpc.GrpcRpcBackendOptions(lanes=["unix", "grpc"]))
if rpc.get_worker_info().id == 0:
    mesh = rpc.mesh([f"worker{rank}" for rank in range(1, 8)])  # this worker sends to 1, 2, 4 and 6
    process, values = rpc.rpc_sync(6, os.getpid), mesh.call_async(run)
    values.wait(any=5)
    while not (rpc.rpc_sync(6, runs) and rpc.rpc_sync(7, runs)):
        pass
    os.kill(process, signal.SIGKILL)
    for value in values:
        print("->", *([value.worker] if isinstance(value, WorkerLostError) else value))
    try:
        mesh.call(name, reduce="cat")
    except WorkerLostError as error:
        print("-> reduced", error.worker)
    print("->", *mesh.call(name).errors(), *mesh.at(worker=slice(5, None)).call(name).errors(), flush=True)
rpc.shutdown()
