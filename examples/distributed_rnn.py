"""A recurrent network in three parts on two workers: it learns to write like Python's language reference.

    telegrad run -n 2 examples/distributed_rnn.py
    python examples/distributed_rnn.py           the same without the launcher

The server owns the table of characters and the decoder; the trainer owns the LSTM between them. A step is two calls in one
context: characters to vectors on the server, vectors to states here, states to scores on the server. One optimizer steps the
parameters of both workers.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import telegrad as tg
from telegrad.examples.curves import curves
from telegrad.examples.local_options import Options, parse
from telegrad.examples.start import start
from telegrad.examples.text import Text
from telegrad.examples.text_training import bits, nothing
from telegrad.examples.tidy import show_all_tidy
from telegrad.examples.trainers import Owner

SIZE, HIDDEN = 24, 96
BATCH, LENGTH = 24, 40


class Part(Owner):
    """One module of the model, on the worker that makes it.

    Args:
        make: class of the module.
        args: its arguments.
        seed: of its parameters.
    """

    def __init__(self, make: type[tg.nn.Module], args: tuple[int, ...], seed: int) -> None:
        tg.manual_seed(seed)
        self.module = make(*args)

    def forward(self, values: tg.Tensor) -> tg.Tensor:
        """Run the module."""
        result: tg.Tensor = self.module(values)
        return result


class Trainer:
    """Worker that owns the LSTM and learns.

    Args:
        text: what to learn.
        options: the options on the command line.
    """

    def __init__(self, text: Text, options: Options) -> None:
        characters, seed = len(text.characters), options.seed
        self.text = text
        self.table = tg.rpc.remote("server", Part, (tg.nn.Embedding, (characters, SIZE), seed))
        self.decoder = tg.rpc.remote("server", Part, (tg.nn.Linear, (HIDDEN, characters), seed + 1))
        tg.manual_seed(seed + 2)
        self.lstm = tg.nn.LSTM(SIZE, HIDDEN, batch_first=True)
        parameters = [tg.RRef(parameter) for parameter in self.lstm.parameters()]
        parameters += self.table.rpc_sync().parameter_rrefs() + self.decoder.rpc_sync().parameter_rrefs()
        self.optimizer = tg.DistributedOptimizer(tg.optim.Adam, parameters, lr=options.lr)
        self.rates = self.optimizer.schedule(tg.optim.lr_scheduler.CosineAnnealingLR, T_max=options.steps)

    def scores(self, pieces: tg.Tensor) -> tg.Tensor:
        """Return scores of the next characters (N, length, characters) for pieces of text (N, length)."""
        states, _ = self.lstm(self.table.rpc_sync().forward(pieces))
        result: tg.Tensor = self.decoder.rpc_sync().forward(states)
        return result

    def step(self) -> float:
        """Take one step on a random batch, and return its loss."""
        pieces, following = self.text.batch(BATCH, LENGTH)
        with tg.autograd_dist.context() as context_id:
            loss = bits(self.scores(pieces), following)
            tg.autograd_dist.backward(context_id, [loss])
            self.optimizer.step(context_id)
        self.rates.step()
        return loss.item()

    def held_out(self) -> float:
        """Return the bits per character on text that is held out."""
        pieces, following = self.text.test(BATCH, LENGTH)
        with tg.no_grad():
            return bits(self.scores(pieces), following).item()


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one worker under the launcher; without it, start both."""
    start(work, 2, (parse("distributed_rnn", "Learn text with a network on two workers.", 150, 1e-2, arguments),))


def work(rank: int, world_size: int, options: Options) -> None:
    """Run one worker; the server only serves."""
    if world_size != 2:
        raise SystemExit("two workers are needed: telegrad run -n 2 ...")
    tg.rpc.init_rpc(("trainer", "server")[rank], rank=rank, world_size=world_size)
    if rank == 0:
        learn(options)
        show_all_tidy(["server"], options.quiet)
    tg.rpc.shutdown()


def learn(options: Options) -> None:
    """Learn, and print and draw how well."""
    text = Text(options.seed)
    trainer = Trainer(text, options)
    losses = [trainer.step() for _ in range(options.steps)]
    found = trainer.held_out()
    print(f"bits per character on held-out text: {found:.3f} (knowing nothing: {nothing(text):.3f})")
    title = f"An LSTM on two workers: {found:.2f} bits per character of held-out text"
    curves(options.out / "training.png", title, {"batches": losses}, "step", "bits per character")


if __name__ == "__main__":
    main(sys.argv[1:])
