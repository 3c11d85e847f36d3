"""Rank 0 ends with everything of ours alive where finalizers run late, when rank 1 has died without a word.

Argument: how it shuts down: "graceful", "at once", or "" for not at all.
"""

import contextvars
import gc
import os
import signal
import sys
import threading

import numpy as np
import telegrad as tg
from telegrad import nn, optim, rpc
from telegrad.core.futures import Future
from telegrad.core.profiler import profile

ending = sys.argv[1]
rank = int(os.environ["RANK"])
local = threading.local()
contexts = []


class Thing:
    """Holds whatever it is given, in a cycle, and uses it when it dies."""

    def __init__(self, *kept):
        self.kept = kept
        self.itself = self
        Thing.made = self  # and in a class

    def __del__(self):
        for each in self.kept:
            getattr(each, "release", list)()  # references can be given up at any time


class Watched(tg.Tensor):
    """Has a finalizer that computes, as long as there is something to compute with."""

    def __del__(self):
        if tg is not None and tg.ones is not None:
            (self.detach() * 2).sum()


def wait_here():
    threading.Event().wait(100)


def die_here():
    os.kill(os.getpid(), signal.SIGKILL)


def make():
    """One of everything: references, calls under way, contexts, graphs, hooks, profiles, shared memory, workers' loaders."""
    remote, own = rpc.remote("w1", dict, ({"a": 1},)), tg.RRef([1])
    remote.to_here()
    x = tg.ones(3, requires_grad=True).share_memory_()
    y = (Watched(np.ones(3), True) * x).exp()
    y.register_hook(lambda gradient: None)
    y.grad_fn.metadata["y"] = y
    with profile(profile_memory=True) as profiled:
        z = tg.softmax(y, 0)
    layer = nn.LSTM(2, 3)
    optimizer = optim.Adam(layer.parameters())
    layer(tg.ones(1, 1, 2))[0].sum().backward()
    optimizer.step()
    pending, never = rpc.rpc_async("w1", wait_here), Future()
    never.add_done_callback(lambda done: Thing(done))
    context = tg.autograd_dist.context()
    if not contexts:
        contexts.append(context.__enter__())
    result = rpc.rpc_sync("w1", tg.mul, (x, x))
    return [remote, own, x, y, z, profiled, layer, optimizer, pending, never, context, result]


def keep_in_thread(ready, stay):
    local.kept = Thing(*make())
    ready.set()
    stay.wait()


rpc.init_rpc(f"w{rank}", rpc_backend_options=rpc.GrpcRpcBackendOptions(rpc_timeout=20, reconnect_timeout=1))
if rank == 1:
    threading.Event().wait()
in_global = make()
in_cycle = Thing(*make())
local.kept = make()
sys.modules["a module of ours"] = Thing(*make())
ready = threading.Event()
in_context = contextvars.copy_context()  # of autograd
threading.Thread(target=in_context.run, args=(keep_in_thread, ready, threading.Event()), daemon=True).start()
assert ready.wait(20)
gc.collect()
gc.freeze()  # nothing is collected any more before the very end
try:
    rpc.rpc_sync("w1", die_here)
except tg.errors.RpcError as error:
    assert "w1" in str(error), error
if ending:
    rpc.shutdown(graceful=ending == "graceful", timeout=10)
gc.unfreeze()
print("over", flush=True)
