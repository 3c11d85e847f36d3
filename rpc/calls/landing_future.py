"""``LandingFuture``: future of an answer whose one tensor is received into memory that its caller gives."""

from __future__ import annotations

from typing import Any

from ...core.futures import Future
from ..lanes.large.landing import Landing


class LandingFuture(Future[Any]):
    """Future of an answer whose one tensor may be received into given memory; then it is a tensor over that.

    Args:
        memory: writable bytes, as many as the tensor has.

    Attributes:
        landing: the memory, until it is withdrawn.
    """

    __slots__ = ("landing",)

    def __init__(self, memory: memoryview) -> None:
        super().__init__()
        self.landing = Landing(memory)
