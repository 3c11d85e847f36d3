"""``Changes``: what happens to a program's tensors and objects between its calls: the same for both runs, chosen by a seed."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from ... import core as tg
from ...core.extend import Tensor

COMMON = 0.25  # of the programs have changes; others would rarely be replayed
DROPPING = 0.4  # of the others lose their gradients between some calls
INVALID = 99  # a class that is out of range


class Subject:
    """Tensors and objects that a program reads, and that change.

    Attributes:
        weight, bias: parameters.
        switch: what the function reads beside its arguments.
        results: of the last call.
    """

    weight: Tensor
    bias: Tensor
    switch: dict[str, Any]
    results: list[Tensor]


Change = Callable[[Subject], None]


def scale_weight(subject: Subject) -> None:
    """Change a parameter in place."""
    with tg.no_grad():
        subject.weight.mul_(0.875)


def move_weight(subject: Subject) -> None:
    """Give a parameter other memory, of other strides."""
    subject.weight.data = subject.weight.detach().t().contiguous().t()


def copy_weight(subject: Subject) -> None:
    """Give a parameter other memory."""
    subject.weight.data = subject.weight.detach().clone() * 1.125


def change_results(subject: Subject) -> None:
    """Write to what a call returned."""
    for each in subject.results:
        try:
            each.detach().fill_(7.0)
        except ValueError:  # an expanded tensor
            continue


def change_gradients(subject: Subject) -> None:
    """Write to the gradients that a call left."""
    for each in (subject.weight, subject.bias):
        if each.grad is not None:
            each.grad.mul_(-2.0)


def drop_gradients(subject: Subject) -> None:
    """Remove the gradients."""
    subject.weight.grad = subject.bias.grad = None


def freeze_bias(subject: Subject) -> None:
    """Let a parameter require no gradient, or one again."""
    subject.bias.requires_grad_(not subject.bias.requires_grad)


def switch(subject: Subject) -> None:
    """Change what a branch of the function reads."""
    subject.switch["on"] = not subject.switch["on"]


def fail(subject: Subject) -> None:
    """Let the function raise in its middle, once."""
    subject.switch["fails"] = True


ALL: list[Change] = [
    *(scale_weight, move_weight, copy_weight, change_results, change_gradients),
    *(drop_gradients, freeze_bias, switch, fail),
]


def make_changes(random: Random, calls: int) -> list[list[Change]]:
    """Return for each call what changes before it.

    Args:
        random: chooses.
        calls: their number.
    """
    if random.random() > COMMON:
        rate = random.choice([0.5, 1.0]) if random.random() < DROPPING else 0.0
        return [[drop_gradients] * (random.random() < rate) for _ in range(calls)]
    kinds = random.sample(ALL, random.choice([1, 1, 2, 3]))
    return [[each for each in kinds if random.random() < 0.4] if call > 1 else [] for call in range(calls)]


def make_inputs(random: Random, weight: Tensor, rows: tuple[int, int], calls: int) -> list[Tensor]:
    """Return the first argument of each call: new tensors, one that is used again, views, or memory of the weight.

    Args:
        random: chooses.
        weight: a parameter with as many columns.
        rows: the two numbers of rows that change from call to call.
        calls: their number.
    """
    columns = weight.shape[1]
    pattern = random.choice(["turns", "turns", "two, then two", "any"])
    counts = [
        rows[call % 2 if pattern == "turns" else call // 2 % 2 if pattern[0] == "t" else random.randrange(2)]
        for call in range(calls)
    ]
    inputs = [tg.randn(count, columns) for count in counts]
    kind = random.choice(["new"] * 7 + ["again", "columns", "every second", "weight's"])
    if kind == "again":
        same = {count: tg.randn(count, columns) for count in rows}
        return [same[count] for count in counts]
    if kind == "columns":
        return [tg.randn(columns, count).t() for count in counts]
    if kind == "every second":
        return [tg.randn(2 * count, columns)[::2] for count in counts]
    if kind == "weight's":
        shared = weight.detach()
        return [shared[: len(each)] if len(each) <= len(weight) else each for each in inputs]
    return inputs


def repeated(random: Random, inputs: list[Tensor]) -> list[Tensor]:
    """Return as many inputs, with the elements of few of them, so that branches are taken again.

    Args:
        random: chooses.
        inputs: the first argument of each call.
    """
    few = inputs[:3]
    same = [[each for each in few if each.shape == x.shape and each.stride() == x.stride()] for x in inputs]
    return [random.choice(each).clone() if each and each[0].is_contiguous() else x for each, x in zip(same, inputs)]


def make_classes(random: Random, inputs: list[Tensor], columns: int) -> list[Tensor]:
    """Return the second argument of each call: a class for each row, now and then one that is out of range.

    Args:
        random: chooses.
        inputs: the first argument of each.
        columns: the number of classes.
    """
    classes = [tg.randint(0, columns, (len(each),)) for each in inputs]
    if random.random() < 0.1:
        call = random.randrange(2, len(classes))
        classes[call][0] = random.choice([INVALID, -INVALID])
    return classes
