"""Asynchronous training with a parameter server: each trainer pushes its gradients exactly once, and all have checkpoints."""

from __future__ import annotations

import json
import sys
import threading
from hashlib import sha256

from ..... import data, nn, optim
from .....agents import init_rpc
from .....checkpoint import Checkpointer
from .....core import Tensor, arange, manual_seed, rand
from .....core.autograd import grad, no_grad
from .....core.futures import Future
from .....rpc import RetryPolicy, call_journal, exactly_once, get_worker_info, idempotent, rpc_sync, shutdown
from ..diary import Diary

SAMPLES, BATCH, SAVE_EVERY, TRAINERS = 96, 8, 5, ("worker1", "worker2")
LONGEST_SECONDS = 100.0  # longer than a training may take: a trainer that waits for ever is found
AGAIN = RetryPolicy(attempts=1000)


class Server:
    """Owner of the parameters, and of a list of the samples that each update used, by trainer."""

    def __init__(self) -> None:
        manual_seed(0)
        self.model = nn.Linear(8, 1)
        self.optimizer = optim.SGD(self.model.parameters(), lr=0.05, momentum=0.9)
        self.updates: dict[str, list[list[int]]] = {name: [] for name in TRAINERS}
        self.finished: dict[str, bool] = {}
        self.changed = threading.Condition()

    def __str__(self) -> str:
        counts = ", ".join(f"{len(updates)} of {name}" for name, updates in self.updates.items())
        return f"{counts}; {sha256(json.dumps(self.updates).encode()).hexdigest()[:16]}"


served: Future[Server] = Future()  # completes when its checkpoint is restored


@idempotent
def fetch() -> list[Tensor]:
    """Return the parameters."""
    server = served.wait()
    with server.changed:
        return [parameter.detach().clone() for parameter in server.model.parameters()]


@exactly_once
def push(trainer: str, samples: list[int], gradients: list[Tensor]) -> None:
    """Take a step with a trainer's gradients."""
    server = served.wait()
    with server.changed:
        for parameter, gradient in zip(server.model.parameters(), gradients):
            parameter.grad = gradient
        server.optimizer.step()
        server.updates[trainer].append(samples)


@exactly_once
def finish(trainer: str) -> None:
    """Note that a trainer has made all its updates."""
    server = served.wait()
    with server.changed:
        server.finished[trainer] = True
        server.changed.notify_all()


def serve(folder: str) -> str:
    """Apply updates, from where the checkpoint says, until all trainers have finished; return which there were."""
    server, calls = Server(), call_journal()
    checkpoints = Checkpointer(
        f"{folder}/server",
        model=server.model,
        optimizer=server.optimizer,
        updates=server.updates,
        finished=server.finished,
        calls=calls,
    )
    checkpoints.restore()
    served.set_result(server)
    calls.open(checkpoints, every=SAVE_EVERY * len(TRAINERS))
    with server.changed:
        server.changed.wait_for(lambda: len(server.finished) == len(TRAINERS))
    return str(server)


def train(folder: str, steps: int, diary: Diary) -> None:
    """Make the updates of one trainer, from where its checkpoint says."""
    me = get_worker_info()
    manual_seed(0)
    inputs = rand(SAMPLES, 8)
    manual_seed(me.id)
    loader = data.DataLoader(
        data.TensorDataset(inputs, inputs.sum(1, keepdim=True), arange(SAMPLES)), BATCH, shuffle=True
    )
    checkpoints = Checkpointer(f"{folder}/{me.name}", loader=loader, calls=call_journal())
    step = checkpoints.restore()
    if step == 0:
        checkpoints.save(0)  # before the first call
    while step < steps:
        for batch, target, numbers in loader:
            samples = numbers.tolist()
            rpc_sync("worker0", push, (me.name, samples, gradients(batch, target)), timeout=LONGEST_SECONDS)
            step += 1
            diary.step(step, samples)
            if step % SAVE_EVERY == 0:
                checkpoints.save(step)
            if step == steps:
                break
    rpc_sync("worker0", finish, (me.name,), timeout=LONGEST_SECONDS)
    call_journal().wait_durable(LONGEST_SECONDS)


def gradients(batch: Tensor, target: Tensor) -> list[Tensor]:
    """Return the gradients of a batch for the server's parameters of now."""
    model = nn.Linear(8, 1)
    with no_grad():
        for parameter, value in zip(
            model.parameters(), rpc_sync("worker0", fetch, timeout=LONGEST_SECONDS, retry=AGAIN)
        ):
            parameter.copy_(value)
    return list(grad(nn.functional.mse_loss(model(batch), target), list(model.parameters())))


def main(folder: str, steps: int) -> None:
    """Serve or train."""
    with Diary() as diary:
        init_rpc()
        if get_worker_info().id == 0:
            diary.done(serve(folder))
        else:
            train(folder, steps, diary)
            diary.done(f"{steps} steps")
        shutdown()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
