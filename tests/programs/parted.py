"""A worker that only seems to be gone, or is. Argument: the scenario."""

import ctypes
import gc
import os
import resource
import signal
import sys
import threading
import time

from telegrad import rpc
from telegrad.base.errors import WorkerLostError

scenario = sys.argv[1]
RANK = int(os.environ["RANK"])
OPTIONS = rpc.GrpcRpcBackendOptions(rpc_timeout=100, keepalive=1.0, reconnect_timeout=2.0)
stop, never = threading.Event(), threading.Event()


def process_id():
    return os.getpid()


def wait_here():
    never.wait(100)


def hold_interpreter(seconds):
    print("holds", flush=True)
    ctypes.PyDLL(None).usleep(int(seconds * 1e6))  # PyDLL keeps the GIL


def hold_soon(seconds):
    threading.Timer(0.1, hold_interpreter, [seconds]).start()


def first_dial_while_the_interpreter_is_held():
    """w2 has never spoken to w0, and holds its GIL for longer than every time-out: it is waited for."""
    if RANK == 1:
        rpc.rpc_sync("w2", hold_soon, (10.0,))
        stop.wait(1)
        rpc.rpc_sync("w0", stop_waiting)
    elif RANK == 0:
        stop.wait(60)
        began = time.monotonic()
        assert rpc.rpc_sync("w2", abs, (-7,)) == 7
        print(f"answered after {time.monotonic() - began:.1f} s", flush=True)


def stop_waiting():
    stop.set()


def without_descriptors():
    """w0 has no descriptor left for longer than every time-out: that says nothing about w1.

    w1 leaves w0 alone meanwhile: it could not tell it from a worker that is stopped, and would give itself up.
    """
    if RANK != 0:
        stop.wait(80)
        return
    held = []
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
    gc.collect()
    try:
        while True:
            held.append(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        print("exhausted", len(held), flush=True)
    call = rpc.rpc_async("w1", abs, (-5,))
    stop.wait(6)
    for descriptor in held:
        os.close(descriptor)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    stop.wait(3)
    assert rpc.rpc_sync("w1", abs, (-7,)) == 7
    rpc.rpc_sync("w1", stop_waiting)
    print("first call", call.done() and call.exception(), flush=True)


def expelled():
    """w2 is stopped, lost, and continued: its program ends as if nothing had happened, but not its process."""
    if RANK == 0:
        process = rpc.rpc_sync("w2", process_id)
        rpc.rpc_sync("w1", call_there)
        call = rpc.rpc_async("w2", wait_here)
        os.kill(process, signal.SIGSTOP)
        try:
            call.wait()
        except WorkerLostError as error:
            print("lost", error, flush=True)
        os.kill(process, signal.SIGCONT)
        while runs(process):  # else it finds nobody who could tell it
            never.wait(0.05)
    elif RANK == 2:
        while not rpc_is_closed():
            stop.wait(0.05)
        print("over", flush=True)
        sys.exit(0)


def runs(process):
    try:
        with open(f"/proc/{process}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def call_there():
    rpc.rpc_sync("w2", abs, (-1,))


def rpc_is_closed():
    try:
        rpc.get_worker_info()
    except RuntimeError as error:
        print("closed:", error, flush=True)
        return True
    return False


def orphan():
    """w0 forks a child that sleeps on, and is killed: w1 hears of it at once."""
    if RANK == 0:
        assert rpc.rpc_sync("w1", abs, (-1,)) == 1
        stop.wait(60)
        child = os.fork()
        if child == 0:
            signal.alarm(100)
            os.close(1)
            os.close(2)
            signal.pause()
        print("child", child, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    else:
        call = rpc.rpc_async("w0", wait_here)
        rpc.rpc_async("w0", stop_waiting)
        began = time.monotonic()
        try:
            call.wait()
        except WorkerLostError:
            print(f"lost after {time.monotonic() - began:.2f} s", flush=True)


rpc.init_rpc(f"w{RANK}", rank=RANK, world_size=int(os.environ["WORLD_SIZE"]), rpc_backend_options=OPTIONS)
globals()[scenario]()
rpc.shutdown(timeout=90)
print("over", flush=True)
