"""w2 dies or freezes while everybody waits for it: w0 and w1 hear of it at once, by name, and go on. Argument: how."""

import os
import signal
import sys
import threading
import time

import telegrad as tg
from telegrad import autograd_dist, rpc
from telegrad.base.errors import RpcError, WorkerLostError

how = sys.argv[1]
QUICK = 25.0 if how == "stop" else 5.0
asleep = threading.Event()


def sleep_here():
    asleep.wait(100)


def strike():
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif how == "exit":
        os._exit(3)
    elif how == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
        asleep.wait(100)  # this thread may go on for a moment
    elif how == "leave":
        rpc.shutdown(graceful=False)


class Multiply(tg.autograd.Function):
    """Its gradient strikes."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        strike()
        return gradient


def multiply(x):
    return Multiply.apply(x)


def make_slowly():
    asleep.wait(100)
    return 1


def expect_lost(what, wait, seconds=QUICK):
    began = time.monotonic()
    try:
        result = wait()
    except WorkerLostError as error:
        assert "'w2'" in str(error), error
        assert error.worker == "w2", error.worker
    else:
        raise AssertionError(f"{what} gave {result!r}")
    took = time.monotonic() - began
    assert took < seconds, f"{what} took {took} s"
    print("lost", what, f"{took:.2f} s", flush=True)


def main():
    rank = int(os.environ["RANK"])
    # A busy machine may need some seconds to answer.
    keepalive = 3.0 if how == "stop" else 1.0
    options = rpc.GrpcRpcBackendOptions(rpc_timeout=100, keepalive=keepalive, reconnect_timeout=2.0)
    rpc.init_rpc(f"w{rank}", rank=rank, world_size=3, rpc_backend_options=options)
    if rank == 0:
        waiters()
    elif rank == 2:
        asleep.wait(100)  # until it is struck
        os._exit(0)
    began = time.monotonic()
    rpc.shutdown(timeout=60)
    assert time.monotonic() - began < 40
    print("over", flush=True)


def waiters():
    made = rpc.remote("w2", int, (5,))
    assert made.to_here() == 5
    slow = rpc.remote("w2", make_slowly)
    through = rpc.rpc_async("w1", fetch, (slow,))
    waiting = {
        "call": rpc.rpc_async("w2", sleep_here).wait,
        "call without a time-out": rpc.rpc_async("w2", sleep_here, timeout=0).wait,
        "to_here": slow.to_here,
        "through w1": through.wait,
    }
    with autograd_dist.context() as context:
        x = tg.ones(2, requires_grad=True)
        loss = rpc.rpc_sync("w2", multiply, (x,)).sum()
        expect_lost("backward", lambda: autograd_dist.backward(context, [loss]))
    for what, wait in waiting.items():
        expect_lost(what, wait)
    expect_lost("later call", lambda: rpc.rpc_sync("w2", abs, (1,)), 1)
    expect_lost("later to_here", made.to_here, 1)
    expect_lost("later remote", lambda: rpc.remote("w2", abs, (1,)).to_here(), 1)
    expect_lost("sending it", lambda: rpc.rpc_sync("w1", fetch, (made,)), 1)
    assert rpc.rpc_sync("w1", abs, (-1,)) == 1
    with autograd_dist.context() as context:
        x = tg.ones(2, requires_grad=True)
        autograd_dist.backward(context, [rpc.rpc_sync("w1", tg.mul, (x, 3.0)).sum()])
        assert autograd_dist.get_gradients(context)[x].tolist() == [3, 3]
    made = slow = wait = waiting = None
    deadline = time.monotonic() + 10
    while any(rpc.debug_info()["references"].values()) and time.monotonic() < deadline:
        time.sleep(0.01)
    info = rpc.debug_info()
    assert not any(info["references"].values()), info
    assert info["contexts"] == info["pending_calls"] == 0, info
    assert isinstance(WorkerLostError("", ""), RpcError)


def fetch(reference):
    return reference.to_here()


main()
