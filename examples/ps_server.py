"""Parameter server: owner of the model's first layers and of their optimizer's state."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import NamedTuple

import telegrad as tg
from telegrad.examples.ps_model import Front
from telegrad.examples.ps_options import Options


class Contribution(NamedTuple):
    """Gradients of one trainer for one step, of the front's parameters and of the head's."""

    front: list[tg.Tensor]
    head: list[tg.Tensor]


class ParameterServer:
    """Object that trainers call through an RRef. Its methods run in several threads at once, one for each call."""

    def __init__(self, options: Options) -> None:
        tg.manual_seed(options.seed)
        self.trainers = options.trainers
        self.front = Front().double() if options.double else Front()
        self.parameters = list(self.front.parameters())
        self.optimizer = tg.optim.SGD(self.parameters, lr=options.lr, momentum=options.momentum)
        self._heads: dict[int, dict[str, tg.Tensor]] = {}
        self._lock = threading.Lock()
        self._open_round()

    def forward(self, levels: tg.Tensor) -> tg.Tensor:
        """Return the features of a batch, as part of the caller's distributed graph: its backward comes back here."""
        features: tg.Tensor = self.front(levels)
        return features

    def features(self, levels: tg.Tensor) -> tg.Tensor:
        """Return the features of a batch without a graph, for evaluation."""
        with tg.no_grad():
            return self.forward(levels)

    @tg.rpc.functions.async_execution
    def exchange(self, context_id: int, head: list[tg.Tensor], rate: float) -> tg.futures.Future[list[tg.Tensor]]:
        """Add a trainer's gradients in sync mode; return the mean of the head's over all trainers.

        Those of the front are here already, in the context. The future completes when all trainers' gradients have come
        and the front has made its step; no thread waits meanwhile.
        """
        gradients = tg.autograd_dist.get_gradients(context_id)
        mine = Contribution([gradients[parameter] for parameter in self.parameters], head)
        with self._lock:
            self._round.append(mine)
            contributions, all_here, stepped = self._round, self._all_here, self._stepped
            complete = len(contributions) == self.trainers
            if complete:
                self._open_round()
        if complete:
            for group in self.optimizer.param_groups:
                group["lr"] = rate
            all_here.set_result(contributions)
        return stepped

    def parameter_rrefs(self) -> list[tg.RRef]:
        """Return references to the front's parameters, for a trainer's ``DistributedOptimizer`` in async mode."""
        return [tg.RRef(parameter) for parameter in self.parameters]

    def blend(self, trainer: int, head: dict[str, tg.Tensor]) -> dict[str, tg.Tensor]:
        """Keep a trainer's head, and return the mean of all trainers' latest without waiting for them."""
        with self._lock:
            self._heads[trainer] = head
        return self.mean_head()

    def mean_head(self) -> dict[str, tg.Tensor]:
        """Return the mean of the heads that trainers sent last; in sync mode all are equal."""
        with self._lock:
            heads = list(self._heads.values())
        return {name: mean([head[name] for head in heads]) for name in heads[0]}

    def _open_round(self) -> None:
        # An exception in the step completes the future that `then` returns, and so reaches every trainer.
        self._round: list[Contribution] = []
        self._all_here: tg.futures.Future[list[Contribution]] = tg.futures.Future()
        self._stepped = self._all_here.then(self._step)

    def _step(self, all_here: tg.futures.Future[list[Contribution]]) -> list[tg.Tensor]:
        contributions = all_here.value()
        set_gradients(self.parameters, [each.front for each in contributions])
        self.optimizer.step()
        return [mean(column) for column in zip(*(each.head for each in contributions))]


def set_gradients(parameters: Sequence[tg.Tensor], contributions: Sequence[Sequence[tg.Tensor]]) -> None:
    """Set ``.grad`` of each parameter to the mean of the trainers' gradients."""
    for parameter, *found in zip(parameters, *contributions):
        parameter.grad = mean(found)


def mean(tensors: Sequence[tg.Tensor]) -> tg.Tensor:
    """Return the mean of tensors of one shape, without a graph."""
    with tg.no_grad():
        total = tensors[0]
        for other in tensors[1:]:
            total = total + other
        return total / len(tensors)
