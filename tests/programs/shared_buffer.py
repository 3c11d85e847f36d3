"""worker0 reads a buffer of worker1 while that computes, while it is stopped, and after it was killed."""

import os
import signal
import threading

import telegrad as tg
from telegrad import rpc
from telegrad.base.errors import WorkerLostError

COUNT = 1 << 20
state = {}


def make():
    state["buffer"] = rpc.Buffer(tg.arange(COUNT))
    state["computing"] = threading.Event()
    return state["buffer"], os.getpid()


def compute(loops):
    """Hold the interpreter until the buffer says that it was read."""
    flag, passed = state["buffer"].tensor, 0
    while flag[0].item() != 7:
        passed += sum(range(loops))
    return passed


rpc.init_rpc()
if rpc.get_worker_info().id == 0:
    buffer, process = rpc.rpc_sync("worker1", make)
    out = tg.zeros(COUNT, dtype=tg.int64)
    computing = rpc.rpc_async("worker1", compute, args=(10_000,))
    buffer.read_into(out)
    assert (out == tg.arange(COUNT)).all() and not computing.done()
    buffer.write_from(tg.tensor([7]))
    assert computing.wait() >= 0
    os.kill(process, signal.SIGSTOP)
    assert buffer.read()[:2].tolist() == [7, 1]
    os.kill(process, signal.SIGKILL)
    while True:
        try:
            buffer.read_into(out)  # it may take a moment to die
        except WorkerLostError as error:
            print(error)
            break
    rpc.shutdown(graceful=False)
else:
    rpc.shutdown()
print("over")
