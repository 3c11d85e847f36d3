"""Three workers over gRPC: what needs processes of their own. Rank 0 asks, the others answer; each part tidies up."""

import multiprocessing
import os
import sys
import threading
import time

import numpy as np
import telegrad as tg
from telegrad import rpc
from telegrad.base.errors import AgentClosedError

counter = 0


class Thing:
    total = 0

    def __init__(self, value):
        self.value = value

    def add(self, number):
        Thing.total += number
        return self.value + number


def count():
    global counter
    counter += 1
    return counter


def total():
    return Thing.total


def process():
    return os.getpid()


def nest(depth, here, there):
    return 0 if depth == 0 else 1 + rpc.rpc_sync(there, nest, (depth - 1, there, here))


def main_globals():
    assert [rpc.rpc_sync("w1", count) for _ in range(3)] == [1, 2, 3]
    assert rpc.rpc_sync("w2", count) == 1
    assert counter == 0
    with rpc.remote("w1", Thing, (5,)) as thing:
        assert thing.rpc_sync().add(2) == 7
    assert rpc.rpc_sync("w1", total) == 2
    assert Thing.total == 0
    assert type(rpc.rpc_sync("w1", Thing, (1,))) is Thing
    seen = {rpc.rpc_sync(name, process) for name in ("w0", "w1", "w2")}
    assert len(seen) == 3


def nested():
    assert rpc.rpc_sync("w1", nest, (1000, "w1", "w2")) == 1000
    assert nest(100, "w0", "w1") == 100


def large():
    for size in (1, 1_000, 20_000, 3_000_000):
        array = np.arange(size, dtype=np.float64)
        futures = [rpc.rpc_async(name, np.negative, (array,)) for name in ("w1", "w2")]
        for future in futures:
            np.testing.assert_array_equal(future.wait(), -array)
    futures = [rpc.rpc_async("w1", abs, (-number,)) for number in range(3000)]
    assert tg.futures.wait_all(futures) == list(range(3000))


def by_value():
    number = 3
    assert rpc.rpc_sync("w1", lambda: (number, os.getpid()))[1] != os.getpid()


def in_child(pending, done, reference, own, results):
    """Every handle of the parent raises at once in a forked child."""
    uses = {
        "rpc_sync": lambda: rpc.rpc_sync("w1", count),
        "rpc_async": lambda: rpc.rpc_async("w1", count),
        "remote": lambda: rpc.remote("w1", count),
        "pending": pending.wait,
        "to_here": reference.to_here,
        "local_value": own.local_value,
        "proxy": lambda: reference.rpc_sync().add(1),
        "RRef": lambda: tg.RRef(1),
        "shutdown": rpc.shutdown,
        "debug_info": rpc.debug_info,
        "context": lambda: tg.autograd_dist.context().__enter__(),
    }
    found = {}
    for name, use in uses.items():
        try:
            found[name] = repr(use())
        except AgentClosedError as error:
            found[name] = "closed"
            assert str(os.getppid()) in str(error) or "forked" in str(error), error
        except BaseException as error:
            found[name] = repr(error)
    found["done"] = done.wait()
    results.send(found)


def fork():
    pending, done = rpc.rpc_async("w1", time.sleep, (1,)), rpc.rpc_async("w1", abs, (-1,))
    done.wait()
    reference, own = rpc.remote("w1", Thing, (1,)), tg.RRef(2)
    here, there = multiprocessing.Pipe()
    child = multiprocessing.get_context("fork").Process(target=in_child, args=(pending, done, reference, own, there))
    child.start()
    assert here.poll(20), "the child did not answer"
    found = here.recv()
    child.join(20)
    assert child.exitcode == 0, child.exitcode
    assert found.pop("done") == 1
    assert set(found.values()) == {"closed"}, found
    pid = os.fork()
    if pid == 0:
        sys.exit(7)  # a child that ends like a program does: no hang, no crash in what it inherited
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
    pending.wait()
    assert reference.to_here().value == 1  # the parent goes on
    assert rpc.rpc_sync("w1", abs, (-3,)) == 3


def main():
    rank = int(os.environ["RANK"])
    options = rpc.GrpcRpcBackendOptions(num_worker_threads=2, rpc_timeout=50)
    rpc.init_rpc(f"w{rank}", rank=rank, world_size=3, rpc_backend_options=options)
    if rank == 0:
        for part in (main_globals, nested, large, by_value, fork):
            part()
            print("done", part.__name__, flush=True)
    rpc.shutdown()
    assert threading.active_count() <= 2, threading.enumerate()  # gRPC's poller may stay
    print("over", flush=True)


if __name__ == "__main__":
    main()
