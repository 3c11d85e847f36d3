"""Trainer: owner of a copy of the model's last layers and of a shard of the digits."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field

import numpy as np
import telegrad as tg
from telegrad.examples import digits
from telegrad.examples.ps_model import Head, count_right, loss_of
from telegrad.examples.ps_options import Options

LINES = 10  # of progress, over the whole training


@dataclass
class History:
    """History of a trainer: the loss of every step, and two accuracies (0 to 1) of every epoch."""

    loss: list[float] = field(default_factory=list)
    accuracy: list[float] = field(default_factory=list)
    held_out: list[float] = field(default_factory=list)


class Trainer:
    """Trainer of one shard. The server makes it with ``remote``; it calls the server through ``server``."""

    def __init__(self, server: tg.RRef, options: Options, index: int) -> None:
        tg.manual_seed(options.seed + 1)  # every trainer starts from the same head
        self.head = Head().double() if options.double else Head()
        self.parameters = list(self.head.parameters())
        self.optimizer = tg.optim.SGD(self.parameters, lr=options.lr, momentum=options.momentum)
        self.server, self.options, self.index = server, options, index
        self.compiled = tg.compile(self.learn) if options.captured else None

    def train(self, board: tg.RRef) -> History:
        """Train for all epochs, and return the history."""
        tg.manual_seed(self.options.seed + 2 + self.index)  # from here on, trainers see different batches
        generator = np.random.default_rng([self.options.seed, self.index])
        batches, history = load_shard(self.options, self.index, self.options.trainers), History()
        held_out = digits.load()
        for epoch in range(self.options.epochs):
            self._run_epoch(epoch, batches, generator, history)
            history.held_out.append(self.evaluate(held_out.test_x, held_out.test_y))
            self._report(epoch, history, board)
        return history

    def sync_step(self, levels: tg.Tensor, labels: tg.Tensor, rate: float) -> tuple[float, int]:
        """Take one step with the mean gradient of all trainers, which do the same; return loss and number of right answers."""
        with tg.autograd_dist.context() as context_id:
            loss, right = self._backward(context_id, levels, labels)
            gradients = tg.autograd_dist.get_gradients(context_id)
            mine = [gradients[parameter] for parameter in self.parameters]
            means = self.server.rpc_sync().exchange(context_id, mine, rate)
        for parameter, gradient in zip(self.parameters, means):
            parameter.grad = gradient
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.step()
        return loss.item(), int(right)

    def async_step(self, levels: tg.Tensor, labels: tg.Tensor, optimizer: tg.DistributedOptimizer) -> tuple[float, int]:
        """Take one step with this trainer's own gradient, independently of the others."""
        loss, right = (self.compiled or self.learn)(levels, labels, optimizer)
        return loss.item(), int(right)

    def learn(
        self, levels: tg.Tensor, labels: tg.Tensor, optimizer: tg.DistributedOptimizer
    ) -> tuple[tg.Tensor, tg.Tensor]:
        """Take one step; return tensors of its loss and number of right answers. ``--captured`` compiles this."""
        with tg.autograd_dist.context() as context_id:
            loss, right = self._backward(context_id, levels, labels)
            optimizer.step(context_id)
        return loss, right

    def evaluate(self, images: digits.Images, labels: digits.Labels) -> float:
        """Return the accuracy of the server's front and this trainer's head."""
        features = self.server.rpc_sync().features(tg.tensor(digits.to_levels(images)))
        with tg.no_grad():
            return count_right(self.head(features), tg.tensor(labels)) / len(labels)

    def head_state(self) -> dict[str, tg.Tensor]:
        """Return the head's parameters by name."""
        state: dict[str, tg.Tensor] = self.head.state_dict()
        return state

    def head_gradients(self) -> list[tg.Tensor]:
        """Return the gradients that the last sync step applied to the head."""
        return [parameter.grad for parameter in self.parameters if parameter.grad is not None]

    def _backward(self, context_id: int, levels: tg.Tensor, labels: tg.Tensor) -> tuple[tg.Tensor, tg.Tensor]:
        features = self.server.rpc_sync().forward(levels)
        scores = self.head(features)
        loss = loss_of(scores, labels)
        tg.autograd_dist.backward(context_id, [loss])
        return loss.detach(), (scores.argmax(dim=1) == labels).sum()

    def _run_epoch(
        self, epoch: int, batches: tg.data.DataLoader, generator: np.random.Generator, history: History
    ) -> None:
        rate = self.options.rate(epoch)
        asynchronous = self.options.mode == "async"
        optimizer = self._distributed_optimizer(rate) if asynchronous else None
        right = 0
        for images, labels in batches:
            levels = tg.tensor(digits.to_levels(digits.jitter(images.numpy(), generator)))
            if optimizer is None:
                loss, hits = self.sync_step(levels, labels, rate)
            else:
                loss, hits = self.async_step(levels, labels, optimizer)
            history.loss.append(loss)
            right += hits
        history.accuracy.append(right / (len(batches) * self.options.batch_size))
        state = self.server.rpc_sync().blend(self.index, self.head_state())
        if asynchronous:
            self.head.load_state_dict(state)

    def _distributed_optimizer(self, rate: float) -> tg.DistributedOptimizer:
        """Return an optimizer with the epoch's learning rate; each epoch has a new one."""
        theirs = self.server.rpc_sync().parameter_rrefs()
        mine = [tg.RRef(parameter) for parameter in self.parameters]
        return tg.DistributedOptimizer(tg.optim.SGD, theirs + mine, lr=rate, momentum=self.options.momentum)

    def _report(self, epoch: int, history: History, board: tg.RRef) -> None:
        """Update the server's progress bars; where they cannot be drawn, print a line every few epochs."""
        done, steps = epoch + 1, len(history.loss) // (epoch + 1)
        loss = sum(history.loss[-steps:]) / steps
        board.rpc_sync().update(self.index, done, loss, history.held_out[-1])
        due = done % max(1, self.options.epochs // LINES) == 0 or done == self.options.epochs
        if due and not self.options.quiet and not sys.stdout.isatty():
            print(
                f"epoch {done:>3}/{self.options.epochs}  loss {loss:.3f}  "
                f"batches {history.accuracy[-1]:6.1%}  held-out {history.held_out[-1]:6.1%}",
                flush=True,
            )


def load_shard(options: Options, index: int, trainers: int) -> tg.data.DataLoader:
    """Return a trainer's part of the digits; all parts have one size, so that all trainers take as many steps."""
    train_x, train_y, _, _ = digits.load()
    size = len(train_y) // trainers
    if size < options.batch_size:
        raise ValueError(
            f"a shard has {size} digits with {trainers} trainers, less than the batch of {options.batch_size}: choose a "
            "smaller --batch-size or fewer trainers"
        )
    mine = slice(index, size * trainers, trainers)
    shard = tg.data.TensorDataset(tg.tensor(train_x[mine]), tg.tensor(train_y[mine]))
    return tg.data.DataLoader(shard, batch_size=options.batch_size, shuffle=True, drop_last=True)
