"""worker0 sends calls that wait for values of worker1, which is killed; then worker2, where a call waits, is killed."""

import os
import signal
import time

from telegrad import rpc
from telegrad.base.errors import WorkerLostError
from telegrad.rpc.current import current_agent


def take_long():
    time.sleep(60)


def waiting():
    return len(current_agent().server.waiting)


def use(value):
    return value


def kill(process, *calls):
    os.kill(process, signal.SIGKILL)
    for call in calls:
        try:
            call()
        except WorkerLostError as error:
            print(error.worker)
        else:
            print("no error")


rpc.init_rpc(rpc_backend_options=rpc.GrpcRpcBackendOptions(lanes=["unix", "grpc"]))
if rpc.get_worker_info().id == 0:
    processes = [rpc.rpc_sync(rank, os.getpid) for rank in (1, 2)]
    reference, future = rpc.remote(1, take_long), rpc.rpc_async(1, take_long)
    of_reference = rpc.rpc_async(2, use, (rpc.value(reference),))
    of_future = rpc.rpc_async(2, use, (future,))
    of_chain = rpc.rpc_async(2, use, (rpc.value(future.remote().method().remote().method()),))
    while rpc.rpc_sync(2, waiting) < 3:
        pass
    kill(processes[0], of_reference.wait, of_future.wait, of_chain.wait, reference.to_here, future.wait)
    own = rpc.remote(0, take_long)
    of_own, made = rpc.rpc_async(2, use, (rpc.value(own),)), rpc.remote(2, use, (rpc.value(own),))
    while rpc.rpc_sync(2, waiting) < 2:
        pass
    kill(processes[1], of_own.wait, made.to_here, rpc.rpc_async(0, use, (rpc.value(made),)).wait)
    print("over", flush=True)
    os._exit(0)  # a thread still sleeps
else:
    rpc.shutdown()
