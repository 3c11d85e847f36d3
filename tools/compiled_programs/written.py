"""``check_written``: a random function from its source, run eagerly and compiled, with objects that change between calls."""

from __future__ import annotations

import functools
import linecache
import warnings
from collections.abc import Callable
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np

from ... import core as tg
from ... import nn, optim
from ...capture import compile as compiled
from ...core.extend import Tensor
from ...nn import functional as F
from .program import Outcome, bits
from .texts import make_text

CALLS = 12
CHANGING = 0.6  # of the programs, objects of half of these change between calls


class Options:
    """Object that a program reads and changes."""

    scale: float = 1
    kept: Tensor | None = None

    def __init__(self) -> None:
        self.flag, self.calls = True, 0


class Surroundings(SimpleNamespace):
    """Objects that a program finds, the same for both runs.

    Args:
        random: chooses.
        compiles: what ``other``, a function inside, goes through.
    """

    def __init__(self, random: Random, compiles: Callable[[Any], Any]) -> None:
        self.o, self.l, self.numbers = Options(), [0.5, 1.5], np.ones(2)
        self.d: dict[str, Any] = {"options": {"k": 1}, "shift": 0}
        self.w, self.b = tg.randn(3, 3, requires_grad=True), tg.randn(3, requires_grad=True)
        makers: list[Callable[[], nn.Module]] = [
            lambda: nn.Linear(3, 3),
            lambda: nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)),
            lambda: nn.Sequential(nn.Dropout(0.5), nn.LayerNorm(3)),
        ]
        self.net = random.choice(makers)()
        kind = random.choice([optim.SGD, optim.Adam])
        self.opt = kind([self.w, self.b, *self.net.parameters()], lr=0.05)
        self.once = functools.lru_cache(None)
        self.globals: dict[str, Any] = {"GLOBAL": 1, "__name__": "compiled_program"}
        self.other = compiles(lambda x: (x @ self.w).sigmoid() * self.o.scale)

    def left(self) -> Any:
        """Return all that calls may have changed, as bytes and texts."""
        tensors = [self.w, self.b, *self.net.parameters(), *self.net.buffers()]
        return _left([tensors, [each.grad for each in tensors], vars(self.o), self.d, self.l, self.numbers.tolist()])


Change = Callable[[Surroundings, int], None]


def _add(found: Surroundings, call: int) -> None:
    vars(found.o)["extra"] = call % 3


def _remove(found: Surroundings, call: int) -> None:
    vars(found.o).pop("extra", None)


def _scale(found: Surroundings, call: int) -> None:
    found.o.scale = 1 + call % 2


def _shift(found: Surroundings, call: int) -> None:
    found.d["shift"] = call % 2 * 7


def _number(found: Surroundings, call: int) -> None:
    found.numbers[0] = call % 2


def _global(found: Surroundings, call: int) -> None:
    found.globals["GLOBAL"] = 1 + call % 2


def _flag(found: Surroundings, call: int) -> None:
    found.o.flag = not found.o.flag


def _train(found: Surroundings, call: int) -> None:
    found.net.train(not found.net.training)


def _memory(found: Surroundings, call: int) -> None:
    found.w.data = found.w.detach().clone()


def _freeze(found: Surroundings, call: int) -> None:
    found.b.requires_grad_(not found.b.requires_grad)


def _clear(found: Surroundings, call: int) -> None:
    found.opt.zero_grad()


def _rate(found: Surroundings, call: int) -> None:
    found.opt.param_groups[0]["lr"] *= 0.5


def _append(found: Surroundings, call: int) -> None:
    found.l.append(0.25)
    del found.l[:-2]


_CHANGES: list[Change] = [
    *(_add, _remove, _scale, _shift, _number, _global, _flag, _train, _memory, _freeze, _clear, _rate, _append),
]


class Written:
    """A program from a seed.

    Args:
        seed: says which.
        compiles: what its function, and the one inside, go through.
    """

    def __init__(self, seed: int, compiles: Callable[[Any], Any]) -> None:
        random = Random(seed)
        tg.manual_seed(seed)
        self.text = make_text(random)
        self.found = Surroundings(random, compiles)
        name = f"<compiled program {seed}>"
        linecache.cache[name] = len(self.text), None, self.text.splitlines(True), name
        exec(compile(self.text, name, "exec"), self.found.globals)  # a text of this package
        self.function = compiles(self.found.globals["make"](tg, F, self.found))
        rows = random.choice([(2, 2), (2, 2), (4, 2)])
        few = [self._input(random, rows[call % 2]) for call in range(4)]
        self.inputs = [random.choice([few[call % 4], few[call % 2]]) for call in range(CALLS)]
        kinds = random.sample(_CHANGES, 2) if random.random() < CHANGING else []
        self.changes = [[each for each in kinds if random.random() < 0.3] for _ in range(CALLS)]
        self.named: list[dict[str, Any]] = [
            random.choice([{}, {}, {}, {"k": 2}, {"flag": False}]) for _ in range(CALLS)
        ]

    def _input(self, random: Random, count: int) -> tuple[Tensor, Tensor]:
        x = random.choice([tg.randn(count, 3), tg.randn(3, count).t(), tg.randn(2 * count, 3)[::2]])
        return x, tg.randint(0, count, (count,))

    def log(self, seed: int) -> list[Any]:
        """Return what calls give and leave behind."""
        log: list[Any] = []
        for call, (x, y) in enumerate(self.inputs):
            for change in self.changes[call]:
                change(self.found, call)
            tg.manual_seed(seed + call)
            try:
                result = self.function(x, y, **self.named[call])
                if isinstance(result, Tensor) and result.requires_grad:
                    result.square().sum().backward()
            except Exception as error:
                result = type(error).__name__
            log.append([_left(result), _left([x, y]), self.found.left(), _left(tg.rand(1))])
        return log


def _left(tree: Any) -> Any:
    if isinstance(tree, Tensor):
        array = tree.detach().numpy()
        return array.shape, str(array.dtype), tree.requires_grad, bits(array)
    if isinstance(tree, dict):
        return {key: _left(each) for key, each in tree.items()}
    return [_left(each) for each in tree] if isinstance(tree, (list, tuple)) else repr(tree)


@np.errstate(all="ignore")
def check_written(seed: int) -> Outcome:
    """Run a program eagerly and compiled, and compare.

    Args:
        seed: says which.
    """
    expected = Written(seed, lambda function: function).log(seed)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r".*(runs eagerly|was called)")
        program = Written(seed, compiled)
        found = program.log(seed)
    linecache.cache.pop(f"<compiled program {seed}>", None)
    functions = [program.function, program.found.other]
    replays = sum(plan.replays for each in functions for plan in each.plans())
    reason = next((entry.reason for each in functions for entry in each._entries.values() if entry.reason), None)
    wrong = [call for call, (one, two) in enumerate(zip(expected, found)) if one != two]
    return Outcome(replays, reason, f"call {wrong[0]} differs" if wrong else None)
