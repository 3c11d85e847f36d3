"""Layout of the arrays of a message: they arrive with the strides that they had, and memory that they share is sent once.

An array that fills its memory in C order needs no layout. Every other array has a *place*: an offset and strides in a buffer.
The buffer spans all elements of the array and of the arrays with which it overlaps. The bytes between the elements of a span
travel too. So a large span that is mostly gaps is not sent: such an array is copied, and arrives without gaps; its dimensions
keep their order in memory.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from ...core.extend import memory_address
from ...core.extend import memory_owner as storage

LAYOUT_HEAD = struct.Struct("<IQ")  # number of the earlier array of the same buffer (or 0), offset in bytes
# Largest span of a buffer, as a multiple of the bytes of its elements; smaller ones are sent in any case. PyTorch's limits.
LARGEST_SPAN = 2
SMALL_SPAN = 8192
ALIGNMENT = 16
FEW_ARRAYS = 6  # of them all pairs are compared; of more, it is quicker to look up the addresses
KNOWN_OWNERS = frozenset((type(None), np.ndarray, memoryview))  # of memory; arrays over one memory have one of these
QUICK_TYPES = frozenset(np.dtype(code).num for code in "?bBhHiIlLqQefdgFDG")  # the types that memoryview knows


class Place(NamedTuple):
    """Place of an array: the earlier array whose buffer it is in (``None``: its own buffer), offset and strides in bytes."""

    shared: int | None
    offset: int
    strides: tuple[int, ...]


class Span(NamedTuple):
    """Addresses of the first byte of an array and of the first byte after it, and the index of the array."""

    begin: int
    end: int
    which: int


def may_share(arrays: Sequence[Any]) -> bool:
    """Return whether two of the arrays, which are in C order, may be in the same memory."""
    owners = {id(array if array.base is None else _owner(array)) for array in arrays}
    if len(owners) < len(arrays):  # the arrays of one frame, say, or one array twice
        return _overlap(arrays)
    foreign = [array for array in arrays if type(array.base) not in KNOWN_OWNERS]
    return len(foreign) > 1 and _overlap(foreign)


def _overlap(arrays: Sequence[Any]) -> bool:
    """Return whether the spans of two of the arrays overlap."""
    if len(arrays) <= FEW_ARRAYS:
        return any(np.may_share_memory(one, other) for one, other in combinations(arrays, 2))
    return len(_overlapping([_span(array, 0) for array in arrays])) < len(arrays)


def _owner(array: Any) -> Any:
    """Return the object that owns the memory of an array: an array, or another object, such as a received frame."""
    array = storage(array)
    return array if array.base is None else array.base


def lay_out(arrays: Sequence[Any], alone: Collection[int] = frozenset()) -> tuple[list[Place | None], list[memoryview]]:
    """Return the place of each array (``None``: it is all of its own buffer, in C order), and the buffers.

    Args:
        arrays: the arrays.
        alone: indices of those that share their buffer with no other, whatever memory they are in.
    """
    first = arrays[0]
    same = len(arrays) == 1 or (not alone and all(array is first for array in arrays))
    if same and (memory := _own_memory(first)) is not None:
        place = None if first.flags.c_contiguous else Place(None, 0, first.strides)
        return [place, *[Place(0, 0, first.strides)] * (len(arrays) - 1)], [memory]
    return _lay_out_in_groups(arrays, alone)


def _own_memory(array: Any) -> memoryview | None:
    """Return the bytes of an array's elements; ``None`` if the array has gaps or may overlap with itself.

    The usual cases are a transposed matrix, a gradient of several inputs of an operation, and one number for all elements.
    """
    if array.flags.c_contiguous:
        return raw_bytes(array)
    if array.flags.f_contiguous:
        return raw_bytes(array.T)
    return None if any(array.strides) else raw_bytes(array[(slice(1),) * array.ndim])


def _lay_out_in_groups(arrays: Sequence[Any], alone: Collection[int]) -> tuple[list[Place | None], list[memoryview]]:
    places: list[Place | None] = [None] * len(arrays)
    buffers: dict[int, memoryview] = {}  # by index of the first array in the buffer
    for group in groups(arrays, alone):
        first = min(span.which for span in group)
        memory = _memory(arrays, group)
        if memory is None:
            for index in (span.which for span in group):
                places[index], buffers[index] = _without_gaps(arrays[index])
            continue
        buffers[first], start = memory
        for index in (span.which for span in group):
            offset = memory_address(arrays[index]) - start
            places[index] = Place(None if index == first else first, offset, arrays[index].strides)
    return places, [buffers[index] for index in sorted(buffers)]


def groups(arrays: Sequence[Any], alone: Collection[int] = frozenset()) -> list[list[Span]]:
    """Return the arrays in groups, each in order of address: those whose spans overlap, directly or through others."""
    spans = [_span(array, index) for index, array in enumerate(arrays)]
    together = [span for span in spans if span.which not in alone]
    return [*_overlapping(together), *([spans[index]] for index in alone)]


def _overlapping(spans: list[Span]) -> list[list[Span]]:
    groups: list[list[Span]] = []
    end = -1
    for span in sorted(spans):
        if span.begin >= end:
            groups.append([])
        groups[-1].append(span)
        end = max(end, span.end)
    return groups


def _span(array: Any, index: int) -> Span:
    begin = end = memory_address(array)
    if array.size == 0:
        return Span(begin, end, index)
    for length, stride in zip(array.shape, array.strides):
        begin += min((length - 1) * stride, 0)
        end += max((length - 1) * stride, 0)
    return Span(begin, end + array.itemsize, index)


def _memory(arrays: Sequence[Any], group: Sequence[Span]) -> tuple[memoryview, int] | None:
    """Return the bytes that a group spans, and their address; ``None`` if its arrays should be sent one by one."""
    members = [arrays[span.which] for span in group]
    if len(group) == 1 and members[0].flags.c_contiguous:
        return None
    begin, end = min(span.begin for span in group), max(span.end for span in group)
    largest = max(sum(map(_distinct_bytes, members)) * LARGEST_SPAN, SMALL_SPAN)
    same = all(span[:2] == group[0][:2] for span in group[1:]) and len(group) > 1  # one array, several times
    if end - begin > largest and not same:
        return None
    owners = {id(owner): owner for owner in map(_owner, members)}
    if any(type(owner) is np.ndarray and owner.dtype.hasobject for owner in owners.values()):
        return None
    whole = _whole(next(iter(owners.values()))) if len(owners) == 1 else None
    if whole is None:
        return _stretch(members, begin, end)
    start = memory_address(whole)
    begin = max(start, begin - begin % ALIGNMENT)  # so that arrays that are aligned here are aligned at the receiver
    return raw_bytes(whole)[begin - start : end - start], begin


def span_of(arrays: Sequence[Any], begin: int, end: int) -> Any:
    """Return the bytes between two addresses as an array.

    Args:
        arrays: they own the memory.
        begin, end: the address of the first byte, and of the first after the last.
    """
    return np.asarray(_Stretch(arrays, begin, end))


class _Stretch:
    """Memory from one address to another, of an owner that gives no buffer: a tensor of another library."""

    def __init__(self, arrays: Sequence[Any], begin: int, end: int) -> None:
        self.arrays = arrays  # they keep the memory
        self.__array_interface__ = {"data": (begin, False), "shape": (end - begin,), "typestr": "|u1", "version": 3}


def _stretch(arrays: Sequence[Any], begin: int, end: int) -> tuple[memoryview, int] | None:
    """Return the bytes that overlapping arrays span, and their address; ``None`` if one would not arrive aligned."""
    if begin == end or any((memory_address(array) - begin) % array.dtype.alignment for array in arrays):
        return None
    return raw_bytes(span_of(arrays, begin, end)), begin


def _without_gaps(array: Any) -> tuple[Place | None, memoryview]:
    """Return the place and the bytes of an array's elements; copied, unless it has no gaps and is in C order."""
    order = sorted(range(array.ndim), key=lambda axis: -abs(array.strides[axis]))
    if array.flags.c_contiguous or order == sorted(order):
        return None, raw_bytes(array)
    turned: Any = np.ascontiguousarray(array.transpose(order))
    return Place(None, 0, turned.transpose(np.argsort(order)).strides), raw_bytes(turned)


def _whole(owner: Any) -> Any:
    """Return all memory of an owner as an array in C order; ``None`` if that is not possible."""
    if isinstance(owner, np.ndarray):
        return None if owner.dtype.hasobject or not owner.flags.forc else owner if owner.flags.c_contiguous else owner.T
    try:
        return np.frombuffer(owner, np.uint8)
    except (TypeError, ValueError, BufferError):
        return None


def _distinct_bytes(array: Any) -> int:
    count = array.itemsize
    for length, stride in zip(array.shape, array.strides):
        count *= length if stride else 1
    return int(count)


def raw_bytes(array: Any) -> memoryview:
    """Return the array's memory in C order as a flat view of bytes; copied only if it is not contiguous."""
    if array.flags.c_contiguous and array.size and array.dtype.num in QUICK_TYPES:
        return memoryview(array).cast("B")
    flat: Any = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return memoryview(flat)


def encode_place(place: Place) -> bytes:
    """Return a place as bytes."""
    return LAYOUT_HEAD.pack(place.shared or 0, place.offset) + struct.pack(f"<{len(place.strides)}q", *place.strides)


def decode_place(view: memoryview, position: int, dimensions: int, shared: bool) -> tuple[Place, int]:
    """Return the place at a position in a message's tables, and the position behind it.

    Args:
        view: the frame.
        position: where the place is.
        dimensions: number of dimensions of the array.
        shared: whether the array is in the buffer of an earlier one.
    """
    earlier, offset = LAYOUT_HEAD.unpack_from(view, position)
    strides = struct.unpack_from(f"<{dimensions}q", view, position + LAYOUT_HEAD.size)
    return Place(earlier if shared else None, offset, strides), position + LAYOUT_HEAD.size + 8 * dimensions


def _check_inside(shape: tuple[int, ...], itemsize: int, memory: Any, place: Place) -> None:
    """Check that an array is within its buffer. NumPy's own check overflows at huge strides, and skips empty buffers."""
    if 0 in shape:
        return  # it has no elements
    begin = end = place.offset
    for length, stride in zip(shape, place.strides):
        begin += min((length - 1) * stride, 0)
        end += max((length - 1) * stride, 0)
    if begin < 0 or end + itemsize > len(memory):
        raise ValueError(
            f"an array from byte {begin} to {end + itemsize} is not within a buffer of {len(memory)} bytes"
        )


def placed(shape: tuple[int, ...], dtype: np.dtype[Any], memory: Any, place: Place) -> Any:
    """Return the array at a place in ``memory``. It is read-only if its own elements overlap, as those of ``expand`` do.

    Args:
        shape: shape of the array.
        dtype: its element type.
        memory: the buffer.
        place: offset and strides in the buffer.

    Raises:
        ValueError: the place is not within the memory.
    """
    _check_inside(shape, dtype.itemsize, memory, place)
    array: Any = np.ndarray(shape, dtype, memory, place.offset, place.strides)
    if 0 in place.strides and any(stride == 0 and length > 1 for length, stride in zip(shape, place.strides)):
        array.flags.writeable = False
    return array
