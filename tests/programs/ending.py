"""Jobs that end in several ways. Argument: the scenario."""

import os
import sys
import threading
import time

from telegrad import rpc
from telegrad.base.errors import AgentClosedError, RpcError, RpcTimeoutError, WorkerLostError
from telegrad.rpc.extend import current_agent

scenario = sys.argv[1]
rank = int(os.environ["RANK"])
world_size = int(os.environ["WORLD_SIZE"])
release = threading.Event()


def wait_here(seconds):
    time.sleep(seconds)
    return "done"


def start():
    rpc.init_rpc(f"w{rank}", rpc_backend_options=rpc.GrpcRpcBackendOptions(rpc_timeout=60))


def in_turn():
    """The first to come waits, and serves meanwhile."""
    start()
    if rank == 1:
        time.sleep(0.3)
        assert rpc.rpc_sync("w0", abs, (-2,)) == 2
    rpc.shutdown()


def under_way():
    """A call that nobody waits for is finished first."""
    start()
    future = rpc.rpc_async(f"w{(rank + 1) % world_size}", wait_here, (0.5,))
    rpc.shutdown()
    assert future.wait(0) == "done"


def chain():
    """A callback that makes a call that has a callback ... is work under way."""
    start()
    ended = []

    def again(number):
        if number:
            other = f"w{(rank + 1) % world_size}"
            rpc.rpc_async(other, wait_here, (0.05,)).add_done_callback(lambda _: again(number - 1))
        else:
            ended.append(True)

    again(5)
    rpc.shutdown()
    assert ended == [True]


def time_out():
    """w1 never calls shutdown: the others are told its name. It stays as long as they do."""
    start()
    if rank == 1:
        peers = current_agent().peers
        while len(peers.live()) > 1:
            time.sleep(0.05)
        os._exit(0)
    began = time.monotonic()
    try:
        rpc.shutdown(timeout=0.5)
    except RpcTimeoutError as error:
        assert "'w1'" in str(error), error
        assert f"'w{rank}' waited 0.5 s in shutdown" in str(error), error
    else:
        raise AssertionError("no time-out")
    assert time.monotonic() - began < 10  # and not the minutes of the default
    try:
        rpc.rpc_sync("w1", abs, (1,))
    except AgentClosedError:
        pass


def twice():
    start()
    rpc.shutdown()
    try:
        rpc.shutdown()
    except AgentClosedError as error:
        assert "rpc.init_rpc" in str(error)
    else:
        raise AssertionError("shut down twice")


def again():
    """Another agent in the same process, at the same port."""
    for number in range(3):
        start()
        assert rpc.rpc_sync(f"w{(rank + 1) % world_size}", abs, (-number,)) == number
        rpc.shutdown()


def forgotten():
    """The process ends without shutdown: no hang, and those who wait are told."""
    start()
    if rank == 1:
        release.wait(0.5)
        return
    try:
        rpc.rpc_sync("w1", wait_here, (20,))
    except WorkerLostError as error:
        assert "'w1'" in str(error), error
    else:
        raise AssertionError("w1 answered")
    rpc.shutdown(timeout=60)


def ungraceful():
    start()
    if rank == 0:
        assert rpc.rpc_sync("w1", abs, (-1,)) == 1
        rpc.shutdown(graceful=False)
        return
    deadline = time.monotonic() + 60
    while "w0" not in gone() and time.monotonic() < deadline:
        time.sleep(0.01)
    rpc.shutdown(timeout=60)


def gone():
    peers = rpc.debug_info()["peers"]
    return [name for name, peer in peers.items() if peer["state"] not in ("connected", "connecting", "not dialed")]


def never_answers():
    """A future of async_execution that never completes, and whose caller has given up, is waited for by nobody."""
    start()
    if rank == 0:
        try:
            rpc.rpc_sync("w1", never, timeout=0.2)
        except RpcTimeoutError:
            pass
    rpc.shutdown(timeout=60)


@rpc.functions.async_execution
def never():
    from telegrad.core.futures import Future

    return Future()


def in_handler():
    """shutdown called by a function that runs for another worker: refused, for it would wait for its own end."""
    start()
    if rank == 0:
        try:
            rpc.rpc_sync("w1", rpc.shutdown, (True, 0.5), timeout=60)
        except RpcError as error:
            assert "inside a function, coroutine or callback that it runs" in str(error), error
        else:
            raise AssertionError("it was not refused")
        try:
            rpc.rpc_sync("w1", rpc.shutdown, (False,), timeout=60)  # this one may
        except WorkerLostError:
            pass
        rpc.shutdown(timeout=60)
        return
    while rpc_is_open():
        time.sleep(0.01)


def never_met():
    """A worker that nobody ever called ends without a word: the others' shutdown does not wait for it."""
    start()
    if rank == 0:
        rpc.shutdown()


def rpc_is_open():
    try:
        rpc.get_worker_info()
    except AgentClosedError:
        return False
    return True


globals()[scenario]()
print("over", flush=True)
