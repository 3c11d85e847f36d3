"""``Undoing``: what a replay has done at one worker so far, to be put back if another worker cannot take part."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...core.extend import Generator, Tensor


class Undoing:
    """Random numbers that the calls of one replay have drawn at one worker, and the calls that they have made in their turn.

    Attributes:
        runs: of parts that call other workers: functions that let these withdraw.
    """

    def __init__(self) -> None:
        self.runs: list[Callable[[], None]] = []
        self._drawn: list[tuple[Generator, Tensor, Tensor]] = []  # with the states before and after

    def drew(self, generators: Sequence[Generator], states: Sequence[Tensor]) -> None:
        """Note that a call has drawn.

        Args:
            generators: from which.
            states: those before.
        """
        self._drawn += [(each, state, each.get_state()) for each, state in zip(generators, states)]

    def undo(self) -> None:
        """Put the states of generators back from which nothing was drawn since, and let other workers do the same."""
        for generator, before, after in reversed(self._drawn):
            if bool((generator.get_state() == after).all()):
                generator.set_state(before)
        for withdraw in reversed(self.runs):
            withdraw()
