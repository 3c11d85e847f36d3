"""``Hop``: the request of a mesh call to a child, which has its part of the workers below it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from ...core.futures import Future

if TYPE_CHECKING:
    from ..calls.dispatch import PendingCall
    from ..wire.bundle import Bundle
    from .tree import Member, Subtree


class HopOwner(Protocol):
    """Mesh call (``MeshCall``), as its requests see it."""

    def text(self, member: Member) -> str:
        """Return what errors say of the call on a worker."""
        ...

    def answered(self, hop: Hop, bundle: Bundle | None, error: BaseException | None) -> None:
        """Take the answer to a request.

        Args:
            hop: the request.
            bundle: the answer, if there is no error; ``None`` if that is the child's own result, and the only one.
            error: why there is no answer.
        """
        ...

    def waiting(self) -> Sequence[object]:
        """Return the caller's futures, or the request of the parent."""
        ...


class Hop(Future[Any]):
    """Request to a child. Its call gets the answer in the thread that completes it, because no user code runs then.

    Args:
        call: the mesh call.
        subtree: the child and the workers below it.

    Attributes:
        head: number of the child.
        request: the request; ``None`` until it is made, and again when it is answered: it has this future.
    """

    __slots__ = ("_call", "head", "request", "subtree")

    def __init__(self, call: HopOwner, subtree: Subtree) -> None:
        super().__init__()
        self._call = call
        self.subtree = subtree
        self.head = subtree[0].number
        self.request: PendingCall | None = None

    def __str__(self) -> str:
        """Name it in errors."""
        text, below = self._call.text(self.subtree[0]), len(self.subtree) - 1
        return f"{text} and {below} below it" if below else text

    def try_finish(self, value: Any = None, error: BaseException | None = None) -> list[Callable[[], object]] | None:
        """Complete it, once, and give the answer to the call."""
        callbacks = super().try_finish(value, error)
        if callbacks is not None:
            self._call.answered(self, value, error)
            self.request = None
        return callbacks

    def leads_to(self) -> Sequence[object]:
        """Return what waits for results of its call here: futures at the caller, the parent's request elsewhere."""
        return self._call.waiting()
