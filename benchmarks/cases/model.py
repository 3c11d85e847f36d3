"""Cases of the programming model: references, gradients through several workers, distributed optimizers, a parameter server."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import Any

from ..libraries import api_here
from ..libraries.torch_model import worker_name
from .base import Case, Figures, Turn, echo, take_times, timed

PARAMETERS, OWNERS = 1_000_000, (1, 2)
TRAINERS = (1, 2)
BATCH, INPUTS, FEATURES, HIDDEN, CLASSES = 64, 64, 128, 64, 10
STEPS = 20


def measure_remote(turn: Turn) -> Figures:
    """Measure ``remote``, which makes a value on the peer, and ``to_here``, which fetches it."""
    api, name = turn.library.api(), worker_name(turn.peer)
    tensor = api.lib.ones(4)
    return take_times(timed(lambda: api.rpc.remote(name, echo, args=(tensor,)).to_here()), turn.seconds)


def measure_autograd(hops: int) -> Callable[[Turn], Figures]:
    """Return a measurement of distributed autograd through ``hops`` workers and back: forward, backward, both gradients."""

    def measure(turn: Turn) -> Figures:
        api = turn.library.api()
        left, right = (api.lib.ones(3, 3, requires_grad=True) for _ in range(2))
        path = list(range(1, hops + 1))

        def step() -> None:
            with api.autograd.context() as context:
                api.autograd.backward(context, [pass_on(left, right, path).sum()])
                assert len(api.autograd.get_gradients(context)) == 2

        return take_times(timed(step), turn.seconds)

    return measure


def pass_on(left: Any, right: Any, path: list[int]) -> Any:
    """Return the sum of two tensors, computed by the last worker of the path: each but the last passes them on."""
    if not path:
        return left + right
    return api_here().rpc.rpc_sync(worker_name(path[0]), pass_on, args=(left, right, path[1:]))


def measure_optimizer(turn: Turn) -> Figures:
    """Measure a step of ``DistributedOptimizer``, whose parameters are on two workers; not the forward and the backward."""
    api = turn.library.api()
    size = PARAMETERS // len(OWNERS)
    names = [worker_name(rank) for rank in OWNERS]
    parameters = [api.rpc.remote(name, make_parameter, args=(size,)) for name in names]
    optimizer = api.optimizer(api.lib.optim.SGD, parameters, lr=0.01)

    def step() -> float:
        with api.autograd.context() as context:
            losses = [api.rpc.rpc_sync(name, total, args=(given,)) for name, given in zip(names, parameters)]
            api.autograd.backward(context, [sum(losses)])
            start = time.perf_counter()
            optimizer.step(context)
            return time.perf_counter() - start

    return take_times(step, turn.seconds)


def make_parameter(size: int) -> Any:
    """Return a parameter of ``size`` ones."""
    return api_here().lib.ones(size, requires_grad=True)


def total(parameter: Any) -> Any:
    """Return the sum of a parameter that this worker owns."""
    return parameter.local_value().sum()


class Front:
    """First layer of a model: it is where the parameter server is."""

    def __init__(self) -> None:
        self._layer = api_here().lib.nn.Linear(INPUTS, FEATURES)

    def forward(self, batch: Any) -> Any:
        """Return the features of a batch."""
        return self._layer(batch).relu()

    def parameters(self) -> list[Any]:
        """Return references to the parameters, for the trainers' optimizers."""
        return [api_here().rpc.RRef(parameter) for parameter in self._layer.parameters()]


class Trainer:
    """Owner of the last layers, which trains both parts on noise."""

    def __init__(self, front: Any) -> None:
        api = self._api = api_here()
        lib, nn = api.lib, api.lib.nn
        self._front = front
        self._head = nn.Sequential(nn.Linear(FEATURES, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, CLASSES))
        self._loss = nn.CrossEntropyLoss()
        self._batch, self._target = lib.randn(BATCH, INPUTS), lib.randint(0, CLASSES, (BATCH,))
        mine = [api.rpc.RRef(parameter) for parameter in self._head.parameters()]
        self._optimizer = api.optimizer(lib.optim.SGD, front.rpc_sync().parameters() + mine, lr=0.01)

    def train(self, steps: int) -> None:
        """Take steps: forward through the server, backward, and a step of the distributed optimizer."""
        for _ in range(steps):
            with self._api.autograd.context() as context:
                scores = self._head(self._front.rpc_sync().forward(self._batch))
                self._api.autograd.backward(context, [self._loss(scores, self._target)])
                self._optimizer.step(context)


def measure_server(turn: Turn) -> Figures:
    """Measure the examples a second of two trainers that share the first layer on a parameter server, each in its own pace."""
    api = turn.library.api()
    if "trainers" not in turn.kept:
        front = api.rpc.RRef(Front())
        turn.kept["trainers"] = [api.rpc.remote(worker_name(r), Trainer, args=(front,)) for r in TRAINERS]
    trainers = turn.kept["trainers"]
    rates, end = list[float](), time.perf_counter() + turn.seconds
    while len(rates) < 2 or time.perf_counter() < end:
        start = time.perf_counter()
        for future in [trainer.rpc_async().train(STEPS) for trainer in trainers]:
            future.wait()
        rates.append(len(trainers) * STEPS * BATCH / (time.perf_counter() - start))
    return {"rate": median(rates)}


CASES = (
    Case("remote + to_here", measure_remote, quick=True),
    *(
        Case(f"autograd, {hops} hop{'s'[: hops > 1]}", measure_autograd(hops), workers=workers, quick=hops == 1)
        for hops, workers in ((1, 2), (2, 9), (4, 9), (8, 9))
    ),
    Case("optimizer step, 1M parameters", measure_optimizer, workers=3),
    Case("parameter server", measure_server, "rate", workers=3),
)
