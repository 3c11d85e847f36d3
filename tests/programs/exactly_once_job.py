"""Worker of a job whose workers are killed and started again: a parameter server, a relay, or a trainer.

Arguments: address of the group, folder, name, rank, number of updates. It prints a line for each update that it applies or
makes, and "done" at the end.
"""

import sys

import numpy as np
from telegrad import rpc
from telegrad.checkpoint import Checkpointer

LOG = {"updates": [], "sum": np.zeros(3)}


@rpc.exactly_once
def push(trainer, number, gradient):
    """Apply an update; return how many there were."""
    LOG["updates"].append([trainer, number])
    LOG["sum"] += gradient
    say(f"applied {trainer} {number}")
    return len(LOG["updates"])


@rpc.exactly_once
def relay(trainer, number, gradient):
    """Apply an update, and hand it on."""
    rpc.rpc_sync("server", push, (trainer, number, gradient), timeout=0)
    return push(trainer, number, gradient)


def read():
    """Return the log of this worker."""
    return LOG["updates"], LOG["sum"]


def say(text):
    """Print a line at once."""
    print(text, flush=True)


def serve(checkpoints):
    """Apply updates until the input ends."""
    checkpoints.restore()
    rpc.call_journal().open(checkpoints, every=7)
    say("serves")
    sys.stdin.read()


def train(checkpoints, name, progress, updates):
    """Make updates, from where the checkpoint says."""
    if not checkpoints.restore():
        checkpoints.save(0)  # before the first call
    say("trains")
    function, to = (relay, "relay") if name.startswith("far") else (push, "server")
    while (number := progress["made"]) < updates:
        rpc.rpc_async(to, function, (name, number, np.full(3, number + 1.0)), timeout=0)
        progress["made"] += 1
        say(f"made {number}")
        if number % 5 == 4:
            checkpoints.save(number)
    rpc.call_journal().wait_durable(120)
    say("done")
    sys.stdin.read()


def main():
    """Run one worker."""
    address, folder, name, rank, updates = sys.argv[1:]
    options = rpc.GrpcRpcBackendOptions(init_method=address)
    rpc.init_rpc(name, rank=int(rank), world_size=0, rpc_backend_options=options)
    rpc.call_journal().keep_at_most(40, 1 << 20)
    progress = {"made": 0}
    checkpoints = Checkpointer(
        f"{folder}/{name}", log=LOG, progress=progress, calls=rpc.call_journal(), rng=False, keep=2
    )
    if name in ("server", "relay"):
        serve(checkpoints)
    else:
        train(checkpoints, name, progress, int(updates))
    rpc.shutdown(graceful=False)


if __name__ == "__main__":
    main()
