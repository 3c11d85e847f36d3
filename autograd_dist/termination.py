"""Detection that a backward over many workers has finished: a diffusing computation, after Dijkstra and Scholten (1980).

A pure state machine of one worker in one pass. An idle worker becomes *engaged* by its first message, and acknowledges that
one only when it is idle again and all its own messages are acknowledged; it acknowledges others at once. So the root has
all its acknowledgements exactly when nothing runs anywhere. A worker may be engaged again later.
"""

from __future__ import annotations

from typing import Generic, TypeVar

M = TypeVar("M")


class Termination(Generic[M]):
    """One worker's part. ``M`` is the type of a message that must be acknowledged."""

    __slots__ = ("awaited", "busy", "engaged", "is_root", "parent")

    def __init__(self, is_root: bool) -> None:
        self.is_root = is_root
        self.engaged = is_root
        self.parent: M | None = None
        self.awaited = 0  # our messages that are not acknowledged
        self.busy = 0  # threads at work

    def received(self, message: M) -> M | None:
        """Note that a message came and a thread begins to work on it; returns it if it must be acknowledged at once."""
        self.busy += 1
        if self.engaged:
            return message
        self.engaged, self.parent = True, message
        return None

    def started(self) -> None:
        """Note that a thread begins to work without a message, at the root."""
        self.busy += 1

    def sent(self) -> None:
        """Note that a message of ours goes out."""
        self.awaited += 1

    def acknowledged(self) -> None:
        """Note that a message of ours was acknowledged."""
        self.awaited -= 1

    def rested(self) -> None:
        """Note that a thread has nothing more to do."""
        self.busy -= 1

    def settle(self) -> tuple[bool, M | None]:
        """Return whether this worker is done for now, and the message to acknowledge for that (the root has none)."""
        if not self.engaged or self.busy or self.awaited:
            return False, None
        parent, self.parent, self.engaged = self.parent, None, False
        return True, parent
