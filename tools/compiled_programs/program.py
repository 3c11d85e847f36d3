"""``check``: a random program from a seed, run eagerly and compiled."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

import numpy as np

from ... import core as tg
from ... import nn, optim
from ...capture import compile as compiled
from ...core.extend import Tensor
from .branches import PLACES, decides
from .changes import Subject, drop_gradients, make_changes, make_classes, make_inputs, repeated
from .gradients import make_uses, use_gradients
from .steps import COLUMNS, Step, make_step

CALLS = 8
KEEPS = ["count", "best", "all"]  # what a program keeps of its calls in Python's objects
LOSSES: list[Callable[[Tensor], Tensor]] = [  # their gradients are expanded, in order, or transposed
    lambda x: x.sum(),
    lambda x: x.sum(0).square().sum(),
    lambda x: (x * 1.5 - 1).square().sum(),
    lambda x: (x.t() * 1.25 if x.ndim == 2 else x).exp().sum(),
]


class Outcome(NamedTuple):
    """Outcome of one program.

    Attributes:
        replays: how many of its calls were replays.
        reason: why calls ran eagerly, if they did.
        problem: the first difference, or ``None``.
    """

    replays: int
    reason: str | None
    problem: str | None


class Program(Subject):
    """A random function with parameters, an optimizer, and arguments for each call.

    Args:
        seed: says which.
        branches: whether most of it looks at elements.
    """

    def __init__(self, seed: int, branches: bool = False) -> None:
        random = Random(seed)
        self._branches = branches
        tg.manual_seed(seed)
        self.weight = tg.randn(COLUMNS, COLUMNS, requires_grad=True)
        self.bias = tg.randn(COLUMNS, requires_grad=random.random() < 0.8)
        kind = random.choice([optim.SGD, optim.Adam, optim.RMSprop, optim.AdamW])
        self.optimizer = kind([each for each in (self.weight, self.bias) if each.requires_grad], lr=0.01)
        self.way = random.choice(["forward", "backward", "step", "outside", "several", "number"])
        rows = random.choice([*[(2, 2)] * 4, (2, 4), (4, 2)])  # each shape is recorded twice
        keeping = Random(-1 - seed)
        self.keeps = keeping.choice(KEEPS) if keeping.random() < 0.3 else ""
        calls = 2 * CALLS if branches or self.keeps else CALLS
        self.inputs = make_inputs(random, self.weight, rows, calls)
        if branches:
            self.inputs = repeated(random, self.inputs)
        self.classes = make_classes(random, self.inputs, COLUMNS)
        self.changes = make_changes(random, calls)
        self.decides = random.choice(PLACES) if random.random() < (0.5 if branches else 0.05) else ""
        self.switch: dict[str, Any] = {"on": False, "fails": False}
        self.results: list[Tensor] = []
        self.looks_up, self.fails_at = random.random() < 0.2, random.randrange(4)
        self.writes, self.loss = random.random() < 0.04, random.choice(LOSSES)
        self.steps = self._make_steps(random, random.randrange(2, 9))
        self.uses, self.again = make_uses(random), random.random() < 0.1
        self.clears = random.random() < 0.5  # else gradients are dropped outside, or add up
        if self.decides == "at gradients" and not self.clears:
            self.changes = [[*each, drop_gradients] for each in self.changes]
        self.kept: dict[str, Any] = {"count": 0, "best": float("inf"), "all": []}

    def _make_steps(self, random: Random, count: int) -> list[Step]:
        """Return steps that run for all inputs."""
        pools = [[x.clone(), self.weight, self.bias] for x in {len(x): x for x in self.inputs}.values()]
        steps: list[Step] = []
        for _ in range(8 * count):
            step = make_step(random, len(pools[0]), self._branches)
            try:
                results = [step(pool) for pool in pools]
            except Exception:
                continue  # the shapes do not fit
            if all(0 < result.numel() < 500 and result.is_floating_point() for result in results):
                steps.append(step)
                for pool, result in zip(pools, results):
                    pool.append(result)
            if len(steps) == count:
                break
        return steps

    def function(self) -> Callable[[Tensor, Tensor], Any]:
        """Return the function to compile."""
        weight, bias, steps, optimizer, way = self.weight, self.bias, self.steps, self.optimizer, self.way
        switch, looks_up, fails_at, writes = self.switch, self.looks_up, self.fails_at, self.writes
        uses, again, kind, clears = self.uses, self.again, self.decides, self.clears
        keeps, kept = self.keeps, self.kept

        def run(x: Tensor, classes: Tensor) -> Any:
            if way in ("step", "number") and clears:
                optimizer.zero_grad()
            if keeps == "count":
                kept["count"] += 1
            if writes:
                x.mul_(0.5)
            pool = [x, weight, bias]
            for place, step in enumerate(steps):
                if place == fails_at and switch["fails"]:
                    raise KeyError(place)
                pool.append(step(pool))
            total = (pool[-1] * weight.sum()).mean()
            if looks_up:
                total = total + nn.functional.cross_entropy(x @ weight, classes)
            if keeps == "count":
                total = total + (weight * x.sum()).square().mean() * (kept["count"] % 3)
            if switch["on"]:
                total = total * 2
            if keeps == "best":
                value = total.item()
                if value < kept["best"]:
                    kept["best"] = value
            if not decides(kind, "before backward", total):
                total = total * 0.5
            if way == "outside":
                return total
            if way == "several":
                return total, pool[len(pool) // 2] * 1, pool[-1] * weight.sum()
            found = []
            if way != "forward":
                total.backward(retain_graph=again)
                found = use_gradients(uses, [weight, bias], x)
            if again and way != "forward":
                total.backward()
                found += use_gradients(uses, [weight, bias], x)
            if way != "forward" and weight.grad is not None and not decides(kind, "at gradients", weight.grad):
                return [pool[-1].detach(), total.detach(), total.detach()]
            if keeps == "all":
                kept["all"].append(total.item())
            if way in ("step", "number") and decides(kind, "after backward", total):
                optimizer.step()
            if not decides(kind, "after step", total):
                return [pool[-1].detach(), pool[0].detach(), total.detach() * 2]
            return [pool[-1].detach(), pool[len(pool) // 2].detach(), total.detach(), *found]

        def read(x: Tensor, classes: Tensor) -> Any:
            results = run(x, classes)
            total = results[2]
            return results, total.item()

        return read if way == "number" else run

    def log(self, function: Callable[[Tensor, Tensor], Any], seed: int) -> list[Any]:
        """Return what calls give and leave behind, as bytes."""
        log: list[Any] = []
        for call, x in enumerate(self.inputs):
            for change in self.changes[call]:
                change(self)
            tg.manual_seed(seed + call)
            try:
                self.results = self._call(function, x, self.classes[call], call)
            except Exception as error:
                self.results = []
                log.append(type(error).__name__)
            self.switch["fails"] = False
            left = [x, self.weight.detach(), self.bias.detach(), *[each.grad for each in (self.weight, self.bias)]]
            log.append(repr(self.kept))
            log.append([None if each is None else (each.shape, bits(each.numpy())) for each in (*self.results, *left)])
        return log

    def _call(self, function: Callable[[Tensor, Tensor], Any], x: Tensor, classes: Tensor, call: int) -> list[Tensor]:
        result = function(x, classes)
        if self.way == "number":
            result = [*result[0], tg.tensor(result[1])]
        if self.way == "outside":
            result.backward()
            result = [result]
        if self.way == "several":
            chosen = result[call % 3]
            if chosen.requires_grad:
                self.loss(chosen).backward()
        return [each.detach() for each in result]


def bits(array: Any) -> bytes:
    """Return the bytes of an array, with one NaN for all of them: which of two NaNs a sum is depends on the memory's place."""
    if array.dtype.kind != "f":
        return bytes(array.tobytes())
    return bytes(np.where(np.isnan(array), np.asarray(np.nan, array.dtype), array).tobytes())


@np.errstate(all="ignore")
def check(seed: int, branches: bool = False) -> Outcome:
    """Run a program eagerly and compiled, and compare.

    Args:
        seed: says which.
        branches: whether most of it looks at elements.
    """
    eager, other = Program(seed, branches), Program(seed, branches)
    expected = eager.log(eager.function(), seed)
    function = compiled(other.function())
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r".*runs eagerly")
        found = other.log(function, seed)
    entries = list(function._entries.values())
    replays = sum(plan.replays for plan in function.plans())
    reason = next((entry.reason for entry in entries if entry.reason is not None), None)
    wrong = [call for call, (one, two) in enumerate(zip(expected, found)) if one != two]
    return Outcome(replays, reason, f"call {wrong[0] // 2} differs ({other.way})" if wrong else None)
