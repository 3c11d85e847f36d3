"""Tensors in shared memory: ``share_memory_``, and how such tensors go to other processes of the host.

Python's own multiprocessing carries them: what its queues, pipes, pools and processes pickle stays shared. Every other
pickle copies. ``sharing_transit.py`` is about the segments under way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import numpy as np

from .errors import AutogradError
from .segments import Segment, create_segment, open_segment
from .types import Array

if TYPE_CHECKING:
    from .tensor import Tensor

# The segments that hold tensors here. One that arrives again is the one that is here already.
_segments: WeakValueDictionary[tuple[int, int], Segment] = WeakValueDictionary()


def share(tensor: Tensor) -> None:
    """Move a tensor's elements into a shared segment, unless they are in one."""
    from .sharing_transit import transit

    transit.collect()  # what was received need not be held longer: now is a time to look
    if shared_segment(tensor._array) is None:
        check_alone(tensor)
        tensor._array = shared_copy(tensor._array)
    register_reducers()


def shared_copy(array: Array) -> Array:
    """A copy of an array in a segment of its own."""
    segment = create_segment(array.nbytes)
    _segments[segment.identity] = segment
    column_major = array.flags.f_contiguous and not array.flags.c_contiguous
    copy = segment.array(array.dtype, array.shape[::-1] if column_major else array.shape)
    copy = copy.T if column_major else copy
    copy[...] = array
    return copy


def check_alone(tensor: Tensor) -> None:
    """Raise if there are views, which would stay in the former memory.

    Raises:
        AutogradError: the tensor is a view of another, or has views.
    """
    recorded = tensor._view is not None and tensor._view[1] is not None
    related = recorded or any(view() is not None for view in tensor._views or ())
    if related:
        raise AutogradError(
            "share_memory_() moves a tensor to other memory, and this one shares its memory with others: it is a view, or "
            "has views; share the whole before you make views of it, or share a clone()"
        )


def storage(array: Array) -> Array:
    """The array whose memory ``array`` is a view of; itself if it is none."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def address(array: Array) -> int:
    """Where an array's first element is in memory."""
    return array.__array_interface__["data"][0]


def shared_segment(array: Array) -> Segment | None:
    """The segment that an array's elements are in, if they were shared on purpose."""
    base = storage(array).base
    return base if isinstance(base, Segment) and base.identity in _segments else None


def adopt_segment(fd: int) -> Segment:
    """The segment of a received descriptor: the one that is here already, if it is."""
    segment = open_segment(fd)
    return _segments.setdefault(segment.identity, segment)


def known_segment(identity: tuple[int, int]) -> Segment | None:
    """The segment of that identity, if it is here."""
    return _segments.get(identity)


# -- pickling for another process


def register_reducers() -> None:
    """Tell multiprocessing how to pickle tensors. Done when the first is shared: who shares none need not import it."""
    from multiprocessing.reduction import ForkingPickler

    from .sharing_transit import reduce_segment
    from .tensor import Tensor

    ForkingPickler.register(Segment, reduce_segment)
    # It goes by exact class.
    classes: list[type[Tensor]] = [Tensor]
    while classes:
        kind = classes.pop()
        ForkingPickler.register(kind, reduce_tensor)
        classes += kind.__subclasses__()


def reduce_tensor(tensor: Tensor) -> Any:
    """How multiprocessing pickles a tensor: a shared one by its segment, any other by its elements."""
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


def rebuild_shared(kind: type[Tensor], segment: Segment, place: tuple[Any, ...], requires_grad: bool) -> Tensor:
    """The tensor that ``reduce_tensor`` described, over the same memory."""
    from .copying import rebuild

    register_reducers()  # it may be sent on
    return rebuild(kind, segment.array(*place), requires_grad)
