"""The part of ``Tensor`` that lets other processes share its memory."""

from __future__ import annotations

from typing import TypeVar

from .state import TensorState

T = TypeVar("T", bound="Shareable")


class Shareable(TensorState):
    """The part of ``Tensor`` that lets other processes share its memory."""

    __slots__ = ()

    def share_memory_(self: T) -> T:
        """Move the elements into memory that other processes can share, unless they are there; return this tensor.

        A process that gets the tensor through Python's multiprocessing (as an argument, or through a queue, pipe or pool)
        then sees each in-place change, and so does this one. A sent tensor is kept until it is received, but if the
        sender ends, the tensors that nobody has received are lost. The memory is freed when its last holder ends or drops
        it, also when it was killed. Assigning to ``data`` gives the tensor memory of its own again.

        Raises:
            AutogradError: the tensor is a view, or has views, which would stay in the former memory.
            OSError: there is not enough memory, or the system is not Linux.
        """
        from .shared_tensors import share  # here: few programs share memory

        share(self)
        return self

    def is_shared(self) -> bool:
        """Return whether the elements are in shared memory, through ``share_memory_`` of this tensor or of its base."""
        from ..shared_memory.registry import shared_segment

        return shared_segment(self._array) is not None
