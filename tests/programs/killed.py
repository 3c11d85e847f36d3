"""One rank is killed in the middle of what its argument says; every other must hear of it at once, by name.

Argument: ``all_reduce``, ``backward`` or ``pipeline``. Each survivor prints whom it heard of.
"""

import os
import signal
import sys

import telegrad as tg
from telegrad import collective as dist
from telegrad.base.errors import WorkerLostError
from telegrad.nn.parallel import DistributedDataParallel
from telegrad.pipelining import Pipeline

VICTIM, SECONDS = 2, 100.0
RANK = int(os.environ["RANK"])


def die():
    if RANK == VICTIM:
        os.kill(os.getpid(), signal.SIGKILL)


def reduce():
    """The victim dies when the others wait for it, in small arrays and in large ones."""
    small, large = tg.ones(10), tg.ones(300_000)
    for step in range(20):
        if step == 10:
            die()
        dist.all_reduce(small, dist.ReduceOp.MAX)
        dist.all_reduce(large, dist.ReduceOp.MAX)


class Dying(tg.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, grad):
        die()
        return grad


def backward():
    """The victim dies when the gradients of the second half have been sent, and those of the first have not."""
    first, second = tg.nn.Linear(300, 300), tg.nn.Linear(300, 300)

    class Model(tg.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = first, second

        def forward(self, x):
            return self.second(Dying.apply(self.first(x)))

    model = DistributedDataParallel(Model(), bucket_cap_mb=0.1)
    while True:
        model(tg.ones(4, 300)).sum().backward()


class Stage(tg.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = tg.nn.Linear(50, 50)

    def forward(self, x):
        return Dying.apply(self.inner(x))


def pipeline():
    """Rank 0 drives three stages, of which the middle one dies in its first backward."""
    if RANK:
        return
    stages = [tg.RemoteModule(f"rank{rank}", Stage) for rank in (1, VICTIM, 3)]
    run = Pipeline(stages, tg.nn.functional.mse_loss, n_microbatches=4, timeout=SECONDS)
    run.step(tg.ones(8, 50), tg.ones(8, 50))


PROGRAMS = {"all_reduce": reduce, "backward": backward, "pipeline": pipeline}

if __name__ == "__main__":
    program = sys.argv[1]
    if program == "pipeline":
        tg.rpc.init_rpc(f"rank{RANK}")
    else:
        dist.init_process_group("rpc", timeout=SECONDS)
    try:
        PROGRAMS[program]()
    except WorkerLostError as error:
        print(f"heard of {error.worker}: {error}", flush=True)
    if program == "pipeline":
        tg.rpc.shutdown(timeout=SECONDS)
    else:
        dist.destroy_process_group()
