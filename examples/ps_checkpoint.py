"""Parameter server whose workers may die at any moment: ``parameter_server.py --checkpoint FOLDER``.

    telegrad run -n 3 --restart one examples/parameter_server.py --checkpoint runs/digits

Rank 0 owns the whole model and its optimizer. Each trainer fetches the parameters, computes a gradient on its shard of the
digits, and pushes it, independently of the others. Every worker has checkpoints of its own. ``push`` is called exactly once:
whichever worker is killed and started again, each batch changes the parameters once. So does the whole job, started again.
"""

from __future__ import annotations

import threading

import numpy as np
import telegrad as tg
from telegrad import rpc
from telegrad.checkpoint import Checkpointer
from telegrad.examples import digits
from telegrad.examples.ps_model import Front, Head, Model, count_right, loss_of
from telegrad.examples.ps_options import Options
from telegrad.examples.ps_trainer import load_shard
from telegrad.examples.tidy import show_tidy

EVERY = 20  # steps of a trainer between two of its checkpoints; and updates of the server, for each trainer
LONGEST_SECONDS = 60.0  # a trainer that waits longer for the server fails, and is started again
AGAIN = rpc.RetryPolicy(attempts=1000)


class Server:
    """Owner of the model. Its functions for trainers are below, because they are called by name."""

    def __init__(self, options: Options) -> None:
        tg.manual_seed(options.seed)
        self.model = Model(Front(), Head())
        self.optimizer = tg.optim.SGD(self.model.parameters(), lr=options.lr, momentum=options.momentum)
        self.progress = {"updates": 0}  # and the epochs that each trainer has finished
        self.changed = threading.Condition()  # no trainer reads parameters of two steps

    def wait_for(self, trainers: int, epochs: int) -> None:
        """Wait until all trainers have finished so many epochs."""
        names = [f"trainer{index}" for index in range(trainers)]
        with self.changed:
            self.changed.wait_for(lambda: all(self.progress.get(name, 0) >= epochs for name in names))


_served: tg.futures.Future[Server] = tg.futures.Future()  # completes when its checkpoint is restored


@rpc.idempotent
def fetch() -> list[tg.Tensor]:
    """Return the parameters."""
    server = _served.wait()
    with server.changed:
        return [parameter.detach().clone() for parameter in server.model.parameters()]


@rpc.exactly_once
def push(gradients: list[tg.Tensor], rate: float) -> None:
    """Take one step with a trainer's gradients."""
    server = _served.wait()
    with server.changed:
        for parameter, gradient in zip(server.model.parameters(), gradients):
            parameter.grad = gradient
        for group in server.optimizer.param_groups:
            group["lr"] = rate
        server.optimizer.step()
        server.progress["updates"] += 1


@rpc.exactly_once
def finish(trainer: str, epochs: int) -> None:
    """Note that a trainer has finished so many epochs."""
    server = _served.wait()
    with server.changed:
        server.progress[trainer] = epochs
        server.changed.notify_all()


def work(rank: int, world_size: int, options: Options) -> None:
    """Run one worker; in every incarnation of it, the same."""
    name = "server" if rank == 0 else f"trainer{rank - 1}"
    rpc.init_rpc(name, rank=rank, world_size=world_size)
    if rank == 0:
        serve(options, world_size - 1)
    else:
        train(options, rank - 1, world_size - 1)
    show_tidy(options.quiet)
    rpc.shutdown()


def serve(options: Options, trainers: int) -> None:
    """Apply the trainers' updates, from where the checkpoint says, and show the result."""
    server, calls = Server(options), rpc.call_journal()
    checkpoints = Checkpointer(
        f"{options.checkpoint}/server",
        model=server.model,
        optimizer=server.optimizer,
        progress=server.progress,
        calls=calls,
    )
    checkpoints.restore()
    print(f"serves from update {server.progress['updates']} on", flush=True)
    _served.set_result(server)
    calls.open(checkpoints, every=EVERY * trainers)
    server.wait_for(trainers, options.epochs)
    _, _, images, labels = digits.load()
    with tg.no_grad():
        right = count_right(server.model(tg.tensor(digits.to_levels(images))), tg.tensor(labels))
    updates = server.progress["updates"]
    print(f"{updates} updates, each once; accuracy on the held-out fifth: {right / len(labels):.2%}", flush=True)


def train(options: Options, index: int, trainers: int) -> None:
    """Make one trainer's updates, from where its checkpoint says."""
    tg.manual_seed(options.seed + 2 + index)
    name, model, loader = f"trainer{index}", Model(Front(), Head()), load_shard(options, index, trainers)
    shifts = np.random.default_rng([options.seed, index])
    checkpoints = Checkpointer(
        f"{options.checkpoint}/{name}", loader=loader, shifts=shifts, calls=rpc.call_journal(), keep=2
    )
    step = checkpoints.restore()
    if step == 0:
        checkpoints.save(0)  # before the first call: a trainer that begins anew goes on with the numbers of its calls
    while loader.epoch < options.epochs:
        rate = options.rate(loader.epoch)
        for images, labels in loader:
            levels = tg.tensor(digits.to_levels(digits.jitter(images.numpy(), shifts)))
            rpc.rpc_sync("server", push, (gradients(model, levels, labels), rate), timeout=LONGEST_SECONDS)
            step += 1
            if step % EVERY == 0:
                checkpoints.save(step)
    rpc.rpc_sync("server", finish, (name, options.epochs), timeout=LONGEST_SECONDS)
    rpc.call_journal().wait_durable(LONGEST_SECONDS)
    checkpoints.save(step)  # more epochs, another time, are new calls


def gradients(model: Model, levels: tg.Tensor, labels: tg.Tensor) -> list[tg.Tensor]:
    """Return the gradients of one batch for the server's parameters of now."""
    with tg.no_grad():
        fetched = rpc.rpc_sync("server", fetch, timeout=LONGEST_SECONDS, retry=AGAIN)
        for parameter, value in zip(model.parameters(), fetched):
            parameter.copy_(value)
    return list(tg.autograd.grad(loss_of(model(levels), labels), list(model.parameters())))
