"""Worker of a job whose lost workers are replaced. Arguments: init method, rank, world size, and what it does.

It says what it does: "met", answers "pid NAME PID" to the line "ask NAME" of its input (a call with ``retry=``), "barrier", and
leaves at the end of its input.
"""

import os
import sys

import telegrad as tg
from telegrad import collective as dist
from telegrad import rpc


@rpc.idempotent
def process_id():
    return os.getpid()


def reduced():
    total = tg.tensor([float(dist.get_rank())])
    dist.all_reduce(total)
    return total.item()


def say(*words):
    print(*words, flush=True)


def main(address, rank, world_size, seconds="60"):
    options = rpc.GrpcRpcBackendOptions(
        init_method=address, replace_within=float(seconds), keepalive=1, reconnect_timeout=1
    )
    rpc.init_rpc(f"w{rank}", rank=int(rank), world_size=int(world_size), rpc_backend_options=options)
    say("met", *(worker.name for worker in rpc.get_worker_infos()))
    for line in sys.stdin:
        what, *names = line.split()
        if what == "ask":
            say(*(rpc.rpc_sync(name, process_id, timeout=60, retry=rpc.RetryPolicy()) for name in names))
        elif what == "barrier":
            rpc._barrier()
            say("passed")
        elif what == "names":
            say(*(worker.name for worker in rpc.get_worker_infos()))
        elif what == "group":
            if dist.is_initialized():
                dist.destroy_process_group()
            dist.init_process_group("rpc")
            say("sum", reduced())
        elif what == "reduce":
            try:
                say(reduced())
            except Exception as error:
                say(type(error).__name__, error)
        elif what == "fail":
            raise KeyError("asked to fail")
    say("leaves")
    rpc.shutdown()
    say("left")


if __name__ == "__main__":
    main(*sys.argv[1:])
