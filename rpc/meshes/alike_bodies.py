"""``AlikeBodies``: bodies of the requests of one mesh call to several children, which differ in their receivers only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..wire.bundle import HEAD
from .heads import MEMBER, pack_members

if TYPE_CHECKING:
    from .heads import RequestHead
    from .tree import Subtree


class AlikeBodies:
    """Bodies of requests with one small content, as ``Bundle`` would make them. What they share is encoded once.

    Args:
        head: of the call.
        over: the id below which all calls of its caller are over.
        joined: the content (``wire.bundle.join``).
        shared: tells of the arrays that are in a segment; empty if there are none.
    """

    def __init__(self, head: RequestHead, over: int, joined: bytes, shared: bytes = b"") -> None:
        self._head = head
        self._over = over
        self._joined = joined
        self._shared = shared
        self._fronts: dict[int, bytes] = {}  # by number of members

    def of(self, subtree: Subtree) -> tuple[bytes, bytes, bytes]:
        """Return the body of the request to the root of a subtree, in pieces."""
        count = len(subtree)
        if (front := self._fronts.get(count)) is None:
            front = self._head.front(count, self._over, 0, self._shared)
            front = self._fronts[count] = HEAD.pack(len(front) + count * MEMBER.size, 1) + front
        return front, pack_members(subtree) if count > 1 else MEMBER.pack(*subtree[0]), self._joined
