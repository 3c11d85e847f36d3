"""CartPole as the examples play it: steps of one game over as many episodes as they take, returns, and the result in a picture.

Needs gymnasium: ``pip install gymnasium``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from numpy.typing import NDArray
from telegrad.examples.curves import curves

OBSERVED, ACTIONS = 4, 2
DISCOUNT = 0.98
LATEST = 30  # episodes of each player that the result is the mean of


class Played(NamedTuple):
    """Some steps of one game.

    Attributes:
        observed: before each step and after the last one, float32, (T + 1, 4).
        actions: int64, (T,).
        ends: whether the pole fell with the step, (T,). After 500 steps an episode ends without that.
        lengths: of the episodes that ended. Each step's reward is 1.
    """

    observed: NDArray[np.float32]
    actions: NDArray[np.int64]
    ends: NDArray[np.bool_]
    lengths: list[int]


class Game:
    """One game, played on and on.

    Args:
        seed: of its beginnings.
    """

    def __init__(self, seed: int) -> None:
        self._game = gymnasium.make("CartPole-v1")
        self._observed, _ = self._game.reset(seed=seed)
        self._length = 0

    def play(self, steps: int, choose: Callable[[NDArray[np.float32]], int]) -> Played:
        """Play some steps; ``choose`` gives the action for an observation (4,)."""
        observed, actions, ends, lengths = [self._observed], [], [], []
        for _ in range(steps):
            actions.append(choose(self._observed))
            fell, over = self._step(actions[-1])
            ends.append(fell)
            if over:
                lengths.append(self._length)
                self._observed, _ = self._game.reset()
                self._length = 0
            observed.append(self._observed)
        return Played(np.stack(observed), np.array(actions), np.array(ends), lengths)

    def _step(self, action: int) -> tuple[bool, bool]:
        self._observed, _, fell, out_of_time, _ = self._game.step(action)
        self._length += 1
        return bool(fell), bool(fell or out_of_time)


def returns(ends: NDArray[np.bool_], after: Any) -> NDArray[np.float32]:
    """Return the discounted sums of the rewards from each step on.

    Args:
        ends: whether the pole fell there, (T,) or, of N games, (T, N).
        after: what is expected after the last step, a number or (N,).
    """
    found, total = np.empty(ends.shape, np.float32), after
    for step in reversed(range(len(ends))):
        total = 1.0 + DISCOUNT * total * ~ends[step]
        found[step] = total
    return found


def mean(parts: Iterable[Sequence[float]]) -> float:
    """Return the mean of all numbers in some lists."""
    return float(np.mean([number for part in parts for number in part]))


def show(path: Path, title: str, lengths: Mapping[str, Sequence[float]]) -> None:
    """Print how long the pole stayed up, and draw it.

    Args:
        path: of the picture.
        title: above it; the result follows.
        lengths: of each player's episodes, in order.
    """
    first, latest = (mean(each[part] for each in lengths.values()) for part in (slice(LATEST), slice(-LATEST, None)))
    print(f"steps that the pole stayed up, last {LATEST} episodes: {latest:.1f} (first {LATEST}: {first:.1f})")
    curves(path, f"{title}: {latest:.0f} steps at the end", lengths, "episode", "steps that the pole stayed up")
