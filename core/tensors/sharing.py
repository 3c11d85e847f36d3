"""Tensors in shared memory: ``share_memory_``, and how multiprocessing pickles such tensors.

In what Python's multiprocessing pickles (arguments of processes, queues, pipes, pools) a shared tensor stays shared. Every
other pickle copies.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from ..array_memory import address
from ..errors import AutogradError
from ..shared_memory.registry import shared_copy, shared_segment
from ..shared_memory.segments import Segment
from ..shared_memory.transit import reduce_segment, transit
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
        transit.collect()  # release what was received meanwhile
        if shared_segment(self._array) is None:
            _check_no_views(self)
            self._array = shared_copy(self._array)
        register_reducers()
        return self

    def is_shared(self) -> bool:
        """Return whether the elements are in shared memory, through ``share_memory_`` of this tensor or of its base."""
        return shared_segment(self._array) is not None


def _check_no_views(tensor: TensorState) -> None:
    recorded = tensor._view is not None and tensor._view[1] is not None
    if recorded or any(view() is not None for view in tensor._views or ()):
        raise AutogradError(
            "share_memory_() moves a tensor to other memory, and this one shares its memory with others: it is a view, or "
            "has views; share the whole before you make views of it, or share a clone()"
        )


def register_reducers() -> None:
    """Tell multiprocessing how to pickle tensors; done when the first is shared, so that others need not import it."""
    from multiprocessing.reduction import ForkingPickler

    ForkingPickler.register(Segment, reduce_segment)
    # It looks up the exact class.
    classes: list[type[Shareable]] = [Shareable]
    while classes:
        kind = classes.pop()
        ForkingPickler.register(kind, reduce_tensor)
        classes += kind.__subclasses__()


def reduce_tensor(tensor: Shareable) -> Any:
    """Return how multiprocessing pickles a tensor: a shared one as its segment, any other with its elements."""
    array = tensor._array
    segment = shared_segment(array)
    if segment is None:
        return tensor.__reduce_ex__(5)
    if tensor._edge is not None:
        raise AutogradError(
            "the result of a recorded operation cannot go to another process, since its graph stays here; use detach()"
        )
    offset = address(array) - address(np.frombuffer(segment, np.uint8))
    place = (array.dtype, array.shape, offset, array.strides)
    return rebuild_shared, (type(tensor), segment, place, tensor._requires_grad), tensor.__dict__ or None


def rebuild_shared(kind: type[T], segment: Segment, place: tuple[Any, ...], requires_grad: bool) -> T:
    """Return the tensor that ``reduce_tensor`` described, over the same memory.

    Args:
        kind: its class.
        segment: the memory.
        place: dtype, shape, offset in bytes, and strides.
        requires_grad: of the tensor.
    """
    register_reducers()  # it may be sent on
    return kind._leaf(segment.array(*place), requires_grad)
