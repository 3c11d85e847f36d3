"""Job whose last worker fails while the others call it. Arguments: how they call it, how it fails."""

import os
import signal
import sys
import threading

from telegrad import rpc
from telegrad.core.futures import Future

called = threading.Event()
enough = threading.Event()


def wait_here(seconds):
    called.set()
    enough.wait(seconds)


@rpc.functions.async_execution
def never_answer():
    called.set()
    return Future()


def touch():
    called.set()


def pass_on(ranks):
    """Call the next worker, which calls the next one; each waits."""
    if ranks:
        rpc.rpc_sync(f"w{ranks[0]}", pass_on, (ranks[1:],))
    else:
        wait_here(100)


def call(case, rank, culprit):
    """Call until the culprit fails."""
    to = f"w{culprit}"
    if case == "serving":
        while True:
            rpc.rpc_sync(to, wait_here, (0.5,))
    elif case == "pending":
        rpc.rpc_sync(to, never_answer)
    elif case == "polling":
        while True:
            rpc.rpc_sync(to, touch)
            enough.wait(0.02)
    elif case == "short":
        while True:
            rpc.rpc_sync(to, touch)
    elif case == "chain":
        rpc.rpc_sync(f"w{rank + 1}", pass_on, (list(range(rank + 2, culprit + 1)),))


def fail(how):
    if how == "hook":
        sys.excepthook = lambda kind, value, traceback: os.write(2, f"my own hook: {value}\n".encode())
    if how == "thread":
        threading.Thread(target=enough.wait).start()
    if how == "exit":
        sys.exit(3)
    if how == "os._exit":
        os._exit(3)
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    if how == "forgotten":
        return
    try:
        raise ValueError("the culprit's own error")
    finally:
        if how == "leave":
            rpc.shutdown(graceful=False)


def main(rank, case, how):
    size = int(os.environ["WORLD_SIZE"])
    rpc.init_rpc(f"w{rank}", rpc_backend_options=rpc.GrpcRpcBackendOptions(rpc_timeout=100))
    if rank < size - 1:
        call(case, rank, size - 1)
    called.wait(60)
    fail(how)


if __name__ == "__main__":
    main(int(os.environ["RANK"]), *sys.argv[1:])
