"""Place of this process in its default process group, for layers that do not know groups."""

from __future__ import annotations

from typing import NamedTuple


class Place(NamedTuple):
    """Rank of a process, and the number of processes, of its default group."""

    rank: int
    world_size: int


_places: list[Place] = []  # one at most


def set_place(place: Place | None) -> None:
    """Record the place of this process; ``None`` when its default group is destroyed."""
    _places[:] = [] if place is None else [place]


def current_place() -> Place | None:
    """Return the place of this process; ``None`` if it has no default group."""
    return _places[0] if _places else None
