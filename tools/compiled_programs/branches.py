"""Steps of random programs that look at elements, or at lengths: branches, loops, numbers."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from ...core.extend import Tensor

Step = Callable[[list[Tensor]], Tensor]
_MOST = 4  # rounds of a loop


def by_length(x: Tensor) -> Tensor:
    """Take one way or the other by the number of rows."""
    return x * 2 if (len(x) > 2 if x.ndim else True) else x + 1


def by_truth(x: Tensor) -> Tensor:
    """Take one way or the other by the truth of a comparison."""
    return x * 2 if x.sum() > 0 else x + 1


def by_several(x: Tensor) -> Tensor:
    """Look twice before the ways part."""
    positive, large = bool(x.sum() > 0), bool(x.abs().amax() > 1)
    return x.tanh() if positive and large else x * 0.5 if large else x.clone()


def until_small(x: Tensor) -> Tensor:
    """Repeat until the elements are small."""
    for _ in range(_MOST):
        if not x.abs().mean() > 0.3:
            break
        x = x * 0.4 + x.sin() * 0.1
    return x


def by_count(x: Tensor) -> Tensor:
    """Use a number of elements as a number, and as a length."""
    count = int((x > 0).sum())
    return (x + count if count % 2 else x.reshape(-1)[: max(1, count % 3)]) * 1.5


def by_list(x: Tensor) -> Tensor:
    """Go through a list of elements."""
    for sign in x.detach().reshape(-1)[:2].sign().tolist():
        x = x + sign
    return x


def by_number(x: Tensor) -> Tensor:
    """Multiply by a number, of which there are few."""
    return x * x.detach().mean().clamp(-1, 1).round().item()


def by_index(x: Tensor) -> Tensor:
    """Choose a row by an integer tensor."""
    rows = x.reshape(-1, x.shape[-1]) if x.ndim else x.reshape(1, 1)
    return rows[int(rows.detach().sum(-1).argmax())]


FORMS: list[Callable[[Tensor], Tensor]] = [
    *(by_length, by_truth, by_truth, by_several, until_small, by_count, by_list, by_number, by_index),
]


def make_branch(random: Random, pick: Callable[[], int]) -> Step:
    """Return a step that looks."""
    form, a = random.choice(FORMS), pick()
    return lambda pool: form(pool[a])


def decides(kind: str, place: str, value: Any) -> bool:
    """Return whether a program goes the first of two ways, at one of the places where it may look at a result.

    Args:
        kind: the place where it looks.
        place: the present one.
        value: the result.
    """
    return True if kind != place else bool((value.detach().sum() * 7).floor() % 2 < 1)


PLACES = ["before backward", "after backward", "after step", *["at gradients"] * 3]
