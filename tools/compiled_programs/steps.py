"""Steps of random programs: operations on tensors whose number of rows may differ between calls."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from ... import core as tg
from ...core.extend import Tensor
from ...nn import functional as F
from .branches import make_branch

COLUMNS = 3
Step = Callable[[list[Tensor]], Tensor]

_UNARY = [
    "abs",
    "cos",
    "erf",
    "exp",
    "log1p",
    "neg",
    "reciprocal",
    "rsqrt",
    "sigmoid",
    "sign",
    "sin",
    "sqrt",
    "square",
    "tanh",
    "relu",
    "floor",
    "softplus",
    "gelu",
    "silu",
    "elu",
    "leaky_relu",
    "hardswish",
    "mish",
    "logsigmoid",
    "clone",
    "detach",
]
_BINARY = ["add", "sub", "mul", "div", "maximum", "minimum", "atan2", "gt", "eq", "where"]
_IN_PLACE = ["add_", "mul_", "relu_", "tanh_", "clamp_", "zero_"]


def _named(name: str) -> Any:
    return next(getattr(place, name) for place in (tg, F, Tensor) if hasattr(place, name))


def _unary(random: Random, pick: Callable[[], int]) -> Step:
    function, a = _named(random.choice(_UNARY)), pick()
    return lambda pool: function(pool[a])


def _binary(random: Random, pick: Callable[[], int]) -> Step:
    name, a, b = random.choice(_BINARY), pick(), pick()
    if name == "where":
        return lambda pool: tg.where(pool[a] > pool[b], pool[a], pool[b])
    function = _named(name)
    if name in ("gt", "eq"):
        return lambda pool: function(pool[a], pool[b]).float()
    return lambda pool: function(pool[a], pool[b])


Forms = list[Callable[..., Any]]


def _number(random: Random, pick: Callable[[], int]) -> Step:
    a, number, kind = pick(), random.choice([2, -1, 0.5, 1.01, True]), random.randrange(5)
    forms: Forms = [
        lambda x: x * number,
        lambda x: number - x,
        lambda x: x / 3 + number,
        lambda x: x.clamp(-0.5, number + 0.5),
        lambda x: x**2,
    ]
    return lambda pool: forms[kind](pool[a])


def _reduction(random: Random, pick: Callable[[], int]) -> Step:
    name, a, dim = random.choice(["sum", "mean", "var", "amax", "logsumexp"]), pick(), random.choice([0, -1])
    keep = random.random() < 0.7
    return lambda pool: getattr(pool[a], name)(dim=dim, keepdim=keep)


def _view(random: Random, pick: Callable[[], int]) -> Step:
    a, kind, cut = pick(), random.randrange(7), random.choice([1, 2])
    forms: Forms = [
        lambda x: x.t() if x.ndim == 2 else x,
        lambda x: x.reshape(-1),
        lambda x: x[:cut],
        lambda x: x[..., cut:],
        lambda x: x.unsqueeze(0),
        lambda x: x.flip(0),
        lambda x: x.expand(2, *x.shape),
    ]
    return lambda pool: forms[kind](pool[a])


def _normalized(random: Random, pick: Callable[[], int]) -> Step:
    a, kind = pick(), random.randrange(5)
    forms: Forms = [
        lambda x: F.softmax(x, -1),
        lambda x: F.log_softmax(x, 0),
        lambda x: F.layer_norm(x, x.shape[-1:]),
        lambda x: F.dropout(x, 0.4),
        lambda x: x.cumsum(-1),
    ]
    return lambda pool: forms[kind](pool[a])


def _product(random: Random, pick: Callable[[], int]) -> Step:
    a, b, kind = pick(), pick(), random.randrange(4)
    forms: Forms = [
        lambda x, y: x @ y,
        lambda x, y: F.linear(x, y),
        lambda x, y: tg.cat([x, y, x]),
        lambda x, y: tg.stack([x, y * 2]),
    ]
    return lambda pool: forms[kind](pool[a], pool[b])


def _in_place(random: Random, pick: Callable[[], int]) -> Step:
    name, a = random.choice(_IN_PLACE), pick()
    given: tuple[Any, ...] = {"add_": (0.5,), "mul_": (1.5,), "clamp_": (-1.0, 1.0)}.get(name, ())

    def run(pool: list[Tensor]) -> Tensor:
        result: Tensor = getattr(pool[a] * 1, name)(*given)
        return result

    return run


MAKERS = [_unary, _unary, _unary, _binary, _binary, _number, _number, _reduction, _view, _view, _normalized, _product]
RARE = [_in_place, _in_place, make_branch]


def make_step(random: Random, count: int, branches: bool = False) -> Step:
    """Return a step that takes some of the tensors that a program has so far; the last ones are likelier.

    Args:
        random: chooses.
        count: the number of these tensors.
        branches: whether steps that look at elements are frequent.
    """

    def pick() -> int:
        return random.randrange(count) if random.random() < 0.4 else count - 1 - random.randrange(min(3, count))

    maker = random.choice(RARE if random.random() < 0.06 else MAKERS)
    return (make_branch if branches and random.random() < 0.2 else maker)(random, pick)
