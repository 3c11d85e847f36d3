"""Tensors in shared memory, and how multiprocessing pickles them.

In what Python's multiprocessing pickles (arguments of processes, queues, pipes, pools) a shared tensor stays shared. Every
other pickle copies.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from ...base.errors import AutogradError
from ..array_memory import address
from ..shared_memory.registry import shared_copy, shared_segment
from ..shared_memory.segments import Segment
from ..shared_memory.transit import reduce_segment, transit
from .state import TensorState

T = TypeVar("T", bound=TensorState)


def share(tensor: TensorState) -> None:
    """Move the elements of a tensor into memory that other processes can share, unless they are there.

    Raises:
        AutogradError: the tensor is a view, or has views.
        OSError: there is not enough memory, or the system is not Linux.
    """
    transit.collect()  # release what was received meanwhile
    if shared_segment(tensor._array) is None:
        _check_no_views(tensor)
        tensor._array = shared_copy(tensor._array)
    register_reducers()


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
    classes: list[type[TensorState]] = [TensorState]
    while classes:
        kind = classes.pop()
        ForkingPickler.register(kind, reduce_tensor)
        classes += kind.__subclasses__()


def reduce_tensor(tensor: TensorState) -> Any:
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
