"""Parameter server whose trainers learn handwritten digits; each is a process of its own.

    telegrad demo                                        one server, two trainers
    telegrad run -n 4 examples/parameter_server.py       one server, three trainers
    python examples/parameter_server.py                  the same without the launcher: it starts the workers itself
    python examples/parameter_server.py --check          distributed against single-process gradients
    telegrad run -n 3 --restart one examples/parameter_server.py --checkpoint runs/digits

Rank 0 is the server: it owns the model's first layers (``ps_model.py``) and their optimizer's state. The other ranks
are trainers: each owns a copy of the last layers and a shard of the digits (``ps_trainer.py``). A step calls the
server's layers through a reference, computes the loss where the trainer is, and differentiates through both processes.
``--mode sync`` steps on the mean of all trainers' gradients (``ps_server.py``); in ``--mode async`` every trainer steps
for itself, as in Hogwild. With ``--checkpoint`` any worker may be killed and started again (``ps_checkpoint.py``).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import telegrad as tg
from telegrad.examples import digits, ps_check, ps_checkpoint
from telegrad.examples.ps_model import Front, Head, Model, count_right
from telegrad.examples.ps_options import Options, parse
from telegrad.examples.ps_picture import save_picture
from telegrad.examples.ps_progress import Board
from telegrad.examples.ps_server import ParameterServer
from telegrad.examples.ps_trainer import History, Trainer
from telegrad.examples.start import start
from telegrad.examples.tidy import show_all_tidy


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one worker under the launcher; without it, start all workers."""
    options, check = parse(arguments)
    start(
        ps_check.work if check else ps_checkpoint.work if options.checkpoint else work, options.trainers + 1, (options,)
    )


def work(rank: int, world_size: int, options: Options) -> None:
    """Run one worker. A trainer only serves: the server calls it."""
    if world_size < 2:
        raise SystemExit("a parameter server needs trainers: start at least two workers (telegrad run -n 3 ...)")
    name = "server" if rank == 0 else trainer_name(rank - 1)
    tg.rpc.init_rpc(name, rank=rank, world_size=world_size)
    if rank == 0:
        serve(replace(options, trainers=world_size - 1))
        show_all_tidy(map(trainer_name, range(world_size - 1)), options.quiet)
    tg.rpc.shutdown()


def serve(options: Options) -> None:
    """Run the server: let the trainers train, then save and show the result."""
    server = ParameterServer(options)
    began = time.perf_counter()
    histories = train_all(server, options)
    seconds = time.perf_counter() - began
    print(f"{options.mode} training with {options.trainers} trainers took {seconds:.1f} s")
    checkpoint = options.out / "model.safetensors"
    options.out.mkdir(parents=True, exist_ok=True)
    tg.save(assemble(server).state_dict(), checkpoint)
    accuracy = evaluate(restore(checkpoint))
    print(f"accuracy of the checkpoint on the held-out fifth: {accuracy:.2%}")
    print(f"checkpoint: {checkpoint.resolve()}")
    save_picture(histories, options.mode, accuracy, options.out / "training.png")


def train_all(server: ParameterServer, options: Options) -> list[History]:
    """Make a trainer on every other worker and wait until all have finished."""
    handle = tg.RRef(server)
    names = [trainer_name(index) for index in range(options.trainers)]
    with Board(options.trainers, options.epochs, options.quiet) as board:
        screen = tg.RRef(board)
        trainers = [tg.rpc.remote(name, Trainer, args=(handle, options, i)) for i, name in enumerate(names)]
        # No time-out: a training may take any time. A trainer that is lost ends its call at once.
        return tg.futures.wait_all([trainer.rpc_async(timeout=0).train(screen) for trainer in trainers])


def assemble(server: ParameterServer) -> Model:
    """Return a model of the server's front and the mean of the trainers' heads."""
    head = Head()
    head.load_state_dict(server.mean_head())
    return Model(server.front, head)


def restore(checkpoint: Path) -> Model:
    """Return the model that a checkpoint holds."""
    model = Model(Front(), Head())
    model.load_state_dict(tg.load(checkpoint))
    return model


def evaluate(model: Model) -> float:
    """Return the accuracy on the held-out digits, between 0 and 1."""
    _, _, images, labels = digits.load()
    with tg.no_grad():
        return count_right(model(tg.tensor(digits.to_levels(images))), tg.tensor(labels)) / len(labels)


def trainer_name(index: int) -> str:
    """Return the name of the trainer of that index."""
    return f"trainer{index}"


if __name__ == "__main__":
    main()
