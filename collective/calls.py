"""``CollectiveCall``: one collective, as one member of a group sees it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from ..core.futures import Future, complete_once


class CollectiveCall:
    """One collective, as one member sees it: its number, how it was called, and until when it waits.

    An ``all_reduce`` has a turn: it completes ``after`` when it is over, and waits for that of the one before.

    Args:
        number: the same on all members.
        signature: name and arguments, which must be the same on all members.
        seconds: how long it waits at most.

    Attributes:
        late: ranks that it waits for in shared memory.
    """

    __slots__ = ("after", "before", "deadline", "late", "number", "signature")

    def __init__(self, number: Any, signature: tuple[str, Any], seconds: float) -> None:
        self.number = number
        self.signature = signature
        self.deadline = time.monotonic() + seconds
        self.before: Future[None] | None = None
        self.after: Future[None] | None = None
        self.late: Sequence[int] = ()

    def left(self) -> float:
        """Return the seconds until its deadline; 0 after it."""
        return max(self.deadline - time.monotonic(), 0.0)

    def end_turn(self) -> None:
        """Let the ``all_reduce`` that was begun after this one go on."""
        if self.after is not None:
            complete_once(self.after)

    def __str__(self) -> str:
        return called(self.signature)


def called(signature: Sequence[Any]) -> str:
    """Return a text of name and arguments of a collective."""
    name, like = signature
    return f"{name}({like})" if like is not None else name
