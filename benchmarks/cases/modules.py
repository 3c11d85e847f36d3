"""PyTorch's modules of which a part is on another worker: a step of training, and activations of 64 MiB there and back."""

from __future__ import annotations

from typing import Any

from ..libraries import api_here
from ..libraries.torch_model import worker_name
from .base import Case, Figures, Turn, take_times, timed
from .programs import Losses, numbered

BATCH, INPUTS, HIDDEN, CLASSES = 16, 32, 64, 10
CHECKED_STEPS = 10
TOKENS, WIDTH, ROWS = 6_250_000, 16, 1 << 20  # 100 M parameters; the rows are 64 MiB of float32


def fill(module: Any) -> Any:
    """Return a module of float64 with parameters that are the same in each library."""
    lib = api_here().lib
    module.to(lib.float64)
    for number, parameter in enumerate(module.parameters()):
        values = lib.sin(lib.arange(parameter.numel(), dtype=lib.float64) + number)
        parameter.data = (0.2 * values).reshape(parameter.shape)
    return module


class Perceptron:
    """Two layers behind a reference."""

    def __init__(self) -> None:
        nn = api_here().lib.nn
        self._layers = fill(nn.Sequential(nn.Linear(HIDDEN, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, CLASSES)))

    def forward(self, hidden: Any) -> Any:
        """Return the scores."""
        return self._layers(hidden)

    def parameters(self) -> list[Any]:
        """Return references to the parameters."""
        return [api_here().rpc.RRef(parameter) for parameter in self._layers.parameters()]


class Training:
    """Training of a layer here and of two behind a reference."""

    def __init__(self, name: str) -> None:
        self._api, lib = api_here(), api_here().lib
        self._layer = fill(lib.nn.Linear(INPUTS, HIDDEN))
        self._rest = self._api.rpc.remote(name, Perceptron)
        mine = [self._api.rpc.RRef(parameter) for parameter in self._layer.parameters()]
        parameters = mine + self._rest.rpc_sync().parameters()
        self._optimizer = self._api.optimizer(lib.optim.SGD, parameters, lr=0.05)
        self._batch = lib.cos(lib.arange(BATCH * INPUTS, dtype=lib.float64)).reshape(BATCH, INPUTS)
        self._targets = lib.arange(BATCH) % CLASSES

    def step(self) -> float:
        """Train once, and return the loss."""
        lib = self._api.lib
        with self._api.autograd.context() as context:
            scores = self._rest.rpc_sync().forward(lib.tanh(self._layer(self._batch)))
            loss = lib.nn.functional.cross_entropy(scores, self._targets)
            self._api.autograd.backward(context, [loss])
            self._optimizer.step(context)
        return float(loss.item())


def measure_training(turn: Turn) -> Figures:
    """Measure a step of ``Training``; the losses are those of the first steps."""
    training = Training(worker_name(turn.peer))
    losses: Losses = [training.step() for _ in range(CHECKED_STEPS)]
    return {**take_times(timed(training.step), turn.seconds), **numbered(losses)}


class Table:
    """Module of 100 M parameters, of which a call uses none, so that the way there and back is most of the time."""

    def __init__(self) -> None:
        nn = api_here().lib.nn
        self._module = nn.ModuleDict({"table": nn.Embedding(TOKENS, WIDTH), "relu": nn.ReLU(inplace=True)})

    def forward(self, activations: Any) -> Any:
        """Return the activations that are positive, and 0 for the others."""
        return self._module["relu"](activations)


def measure_large(turn: Turn) -> Figures:
    """Measure 64 MiB of activations to a large module behind a reference, and 64 MiB back."""
    kept, api = turn.kept, api_here()
    if "table" not in kept:
        kept["table"] = api.rpc.remote(worker_name(turn.peer), Table)
        kept["activations"] = api.lib.ones(ROWS, WIDTH)
    table, activations = kept["table"], kept["activations"]
    return take_times(timed(lambda: table.rpc_sync().forward(activations)), turn.seconds)


CASES = (
    Case("step of two workers", measure_training),
    Case("module of 100M parameters, 64 MiB", measure_large),
)
