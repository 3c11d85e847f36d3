"""Places in the program where references are made: recorded only where the user asks for it, as each takes microseconds."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from .ids import RRefId

if TYPE_CHECKING:
    from ..rpc.extend import ObservedFrame

FIRST_SWEEP = 1000  # places; the next sweep comes when twice as many are left


class CreationPlaces:
    """Places where this worker's program made references. Any thread.

    Args:
        alive: returns the references that this worker knows; the places of others are forgotten.
    """

    def __init__(self, alive: Callable[[], Collection[RRefId]]) -> None:
        self._alive = alive
        self._places: dict[RRefId, ObservedFrame] = {}
        self._sweep_at = FIRST_SWEEP

    def note(self, rref_id: RRefId) -> None:
        """Note the innermost line of the program that runs in this thread as the place of a new reference."""
        from ..rpc.extend import frames_of, place_of_frames  # here: few programs want places

        place = place_of_frames(frames_of(sys._getframe(1)))
        if place is None:
            return
        self._places[rref_id] = place
        if len(self._places) >= self._sweep_at:
            alive = self._alive()
            self._places = {each: self._places[each] for each in alive if each in self._places}
            self._sweep_at = max(2 * len(self._places), FIRST_SWEEP)

    def get(self, rref_id: RRefId) -> ObservedFrame | None:
        """Return the place where a reference was made; None if another worker made it."""
        return self._places.get(rref_id)
