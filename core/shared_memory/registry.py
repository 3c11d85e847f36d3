"""The shared segments of this process, by identity: memory that arrives twice is mapped once."""

from __future__ import annotations

from weakref import WeakValueDictionary

from ..array_memory import storage
from ..types import Array
from .segments import Segment, create_segment, open_segment

_segments: WeakValueDictionary[tuple[int, int], Segment] = WeakValueDictionary()


def shared_copy(array: Array) -> Array:
    """Return a copy of an array in a new segment, in the same order of dimensions in memory."""
    segment = create_segment(array.nbytes)
    _segments[segment.identity] = segment
    column_major = array.flags.f_contiguous and not array.flags.c_contiguous
    copy = segment.array(array.dtype, array.shape[::-1] if column_major else array.shape)
    copy = copy.T if column_major else copy
    copy[...] = array
    return copy


def shared_segment(array: Array) -> Segment | None:
    """Return the registered segment that holds the array's elements, if there is one."""
    base = storage(array).base
    return base if isinstance(base, Segment) and base.identity in _segments else None


def adopt_segment(fd: int) -> Segment:
    """Return the segment of a received descriptor, which is closed if the segment is registered already."""
    segment = open_segment(fd)
    return _segments.setdefault(segment.identity, segment)


def known_segment(identity: tuple[int, int]) -> Segment | None:
    """Return the registered segment of that identity, if there is one."""
    return _segments.get(identity)
