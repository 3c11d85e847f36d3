"""Four workers with RPC and a process group of two of them, in every order in which they can begin and end.

Argument: where the others of each are found, as for ``init_rpc``.
"""

import os
import sys

import telegrad as tg
from telegrad import collective as dist
from telegrad import rpc

RANK, WORLD = int(os.environ["RANK"]), 4
PLACE = sys.argv[1]


def options():
    return rpc.GrpcRpcBackendOptions(init_method=PLACE)


def total(value):
    x = tg.full((3,), float(value))
    dist.all_reduce(x)
    return x.tolist()


def asked(value):
    return total(value), dist.get_rank(), dist.get_world_size(), rpc.get_worker_info().name


def group_first():
    """Ranks 0 and 1 are a group before there is RPC, and after it. A larger group follows at the same file."""
    if RANK < 2:
        dist.init_process_group("gloo", PLACE, rank=RANK, world_size=2)
    rpc.init_rpc(f"w{RANK}", rank=RANK, world_size=WORLD, rpc_backend_options=options())
    if RANK == 3:
        calls = [rpc.rpc_async(f"w{rank}", asked, (rank + 1,)) for rank in range(2)]
        assert [call.wait() for call in calls] == [([3.0] * 3, rank, 2, f"w{rank}") for rank in range(2)]
    rpc.shutdown()
    if RANK < 2:
        assert total(RANK + 5) == [11.0] * 3
        assert len(tg.data.DistributedSampler(range(10))) == 5
        dist.destroy_process_group()
    if PLACE != "env://":  # whose rank 0 has left
        dist.init_process_group("gloo", PLACE, rank=RANK, world_size=4)
        assert total(RANK) == [6.0] * 3
        dist.destroy_process_group()


def rpc_first():
    """Ranks 2 and 3 are a group while there is RPC: its rank 0 is not that of RPC."""
    rpc.init_rpc(f"w{RANK}", rank=RANK, world_size=WORLD, rpc_backend_options=options())
    for again in range(2):  # a destroyed group makes room for the next one
        if RANK >= 2:
            dist.init_process_group("gloo", rank=RANK - 2, world_size=2)
            assert total(RANK + again) == [5.0 + 2 * again] * 3
            assert rpc.rpc_sync("w0", abs, (-1,)) == 1
            dist.destroy_process_group()
    rpc.shutdown()


def all_of_them():
    """Without arguments the group is of the workers of RPC."""
    rpc.init_rpc(f"w{RANK}", rank=RANK, world_size=WORLD, rpc_backend_options=options())
    dist.init_process_group()
    rpc.shutdown()
    assert total(RANK) == [6.0] * 3
    dist.destroy_process_group()


if __name__ == "__main__":
    group_first()
    if PLACE == "env://":  # a file serves RPC once
        rpc_first()
        all_of_them()
    print("all right")
