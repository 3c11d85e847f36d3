"""Models of random trainings, and the ways to call them: across workers, and in one process."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....autograd_dist import get_gradients
from ....core import cat, tensor
from ....core.extend import Tensor
from ....nn.functional import embedding
from ....rpc import ReferenceMesh, scattered, sharded
from ....rref import RRef
from ..leaves import Gradient, gradient_of
from ..operations import ROWS
from ..plan import SHAPE

Call = Callable[[Any, Tensor, int], Tensor]  # of the models, with a tensor; it may call the one at a place


class TrainedModel:
    """Model with one parameter.

    Args:
        seed: decides the values of the parameter, with ``place``.
        place: place of its worker in the mesh; -1 for a model of the caller.
        sparse: its parameter is a table, and gets sparse gradients.
    """

    def __init__(self, seed: int, place: int, sparse: bool) -> None:
        self._sparse = sparse
        self.weight = Tensor(np.random.default_rng((seed, place + 1)).standard_normal(SHAPE), requires_grad=True)

    def forward(self, x: Tensor, factor: float = 1.0) -> Tensor:
        """Return a tensor of the shape of ``x``."""
        weight = embedding(tensor(ROWS), self.weight, sparse=True).sum(0) if self._sparse else self.weight
        return (x * weight + factor).tanh()

    def spread(self, rows: Tensor) -> Tensor:
        """Return a tensor of the shape of the parameter, made of some rows."""
        return self.forward(rows.sum(0).expand(SHAPE))

    def lend(self) -> RRef:
        """Return a reference to the parameter."""
        return RRef(self.weight)

    def values(self) -> Any:
        """Return a copy of the parameter's values."""
        return self.weight.detach().numpy().copy()

    def gradient(self, context_id: int) -> Gradient:
        """Return the parameter's gradient in a context."""
        return gradient_of(get_gradients(context_id).get(self.weight))


def factors_of(count: int) -> list[float]:
    """Return the factor that each model of a mesh gets."""
    return [0.5 - 0.25 * place for place in range(count)]


def _reduced(reduce: str) -> Call:
    def call(models: ReferenceMesh, x: Tensor, _: int) -> Tensor:
        found = models.call("forward", (x, scattered(factors_of(len(models)))), reduce=reduce)
        return _folded(found) if reduce == "cat" else found

    return call


def _values(models: ReferenceMesh, x: Tensor, _: int) -> Tensor:
    return functools.reduce(operator.add, models.call("forward", (x, scattered(factors_of(len(models))))).values())


def _sharded(models: ReferenceMesh, x: Tensor, _: int) -> Tensor:
    return models.call("spread", (sharded(x),), reduce="sum")


def _one(models: ReferenceMesh, x: Tensor, place: int) -> Tensor:
    return list(models)[place].rpc_sync().forward(x)


def _reference(models: ReferenceMesh, x: Tensor, place: int) -> Tensor:
    return list(models)[place].remote().forward(x).to_here()


ACROSS: dict[str, Call] = {
    **{reduce: _reduced(reduce) for reduce in ("sum", "mean", "cat")},
    "values": _values,
    "sharded": _sharded,
    "one": _one,
    "reference": _reference,
}


def call_here(way: str, models: Sequence[TrainedModel], x: Tensor, place: int) -> Tensor:
    """Return what a call across workers returns, computed by this process alone.

    Args:
        way: a key of ``ACROSS``.
        models: equal ones, in this process.
        x: the argument.
        place: of the model that is called, if it is one.
    """
    if way in ("one", "reference"):
        return models[place].forward(x)
    if way == "sharded":
        cuts = np.array_split(np.arange(SHAPE[0]), len(models))
        return functools.reduce(
            operator.add, [model.spread(x[rows[0] : rows[-1] + 1]) for model, rows in zip(models, cuts)]
        )
    results = [model.forward(x, factor) for model, factor in zip(models, factors_of(len(models)))]
    if way == "cat":
        return _folded(cat(results))
    return functools.reduce(operator.add, results) * (1 / len(models) if way == "mean" else 1.0)


def _folded(rows: Tensor) -> Tensor:
    """Add up parts of many rows, each part with another weight."""
    parts = len(rows) // SHAPE[0]
    weighted = [rows[SHAPE[0] * part : SHAPE[0] * (part + 1)] * (part + 1.0) for part in range(parts)]
    return functools.reduce(operator.add, weighted)
