"""Counts what a warm small call costs, in calls and sleeps, and prints it as JSON. No seconds: they depend on the machine."""

import json
import os
import resource

import telegrad as tg
from telegrad import rpc
from telegrad.testing import count

ROUNDS, CALLS = 10, 50
LOOKS = {"future.done", "reading._read_once", "stream_reader.read"}  # called the more often, the longer the peer takes


def nothing():
    pass


def echo(value):
    return value


def sleeps():
    """Return how often threads of this process have gone to sleep so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw


def sleeps_of_both(step):
    """Sleeps for one call in the quietest of some rounds: under load the spinning does not pay, and is given up."""
    quietest = []
    for _ in range(ROUNDS):
        before = sleeps() + rpc.rpc_sync("w1", sleeps)
        for _ in range(CALLS):
            step()
        quietest.append((sleeps() + rpc.rpc_sync("w1", sleeps) - before) / CALLS)
    return min(quietest)


def main():
    rank = int(os.environ["RANK"])
    rpc.init_rpc(f"w{rank}", rank=rank)
    if rank == 0:
        tensor = tg.ones(256)
        steps = {
            "no-op": lambda: rpc.rpc_sync("w1", nothing),
            "1 KiB echo": lambda: rpc.rpc_sync("w1", echo, (tensor,)),
        }
        assert rpc.rpc_sync("w1", nothing) is None
        for name, step in steps.items():
            counts = count(step)
            costs = {
                "python calls": sum(calls for name, calls in counts.python_calls.items() if name not in LOOKS),
                "writes": counts.c_calls["send"] + counts.c_calls["sendmsg"],
                "locks made": counts.c_calls["allocate_lock"],
                "blocks": counts.blocks,
                "sleeps": sleeps_of_both(step),
            }
            print(json.dumps({name: costs}), flush=True)
        print(rpc.debug_info()["peers"]["w1"]["lane"], flush=True)
    rpc.shutdown()


main()
