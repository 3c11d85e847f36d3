"""``LateFrames``: frames for one peer that no thread waits for. The next frame to that peer takes them along."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class LateFrames:
    """Frames for one peer that wait for the next one, by whatever session that goes.

    If none goes, what set ``take`` sends them itself in a moment.

    Attributes:
        take: returns the frames, which count as sent from then on; ``None`` while there are none.
    """

    __slots__ = ("take",)

    def __init__(self) -> None:
        self.take: Callable[[], list[list[Any]]] | None = None
