"""``RawBody``: a body of bytes and arrays, for requests whose ends need neither names nor tensors; it is never pickled.

    pickled: LEAD | row | row ... | words | padding | array | padding | array ...

So small arrays travel inside the body, and its rows, which are the same in each such message, are made and parsed once. Large
ones, and those that share memory, are in the message's tables, as those of other bodies.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ...base.errors import SerializationError
from ...core.extend import Tensor
from .dtypes import dtype_name, find_dtype
from .header import FRAME_HEAD, Flag
from .layout import may_share
from .messages import NO_ATTACHMENTS, Attachments, Incoming, Outgoing
from .tables import TABLE_ALIGNMENT

LEAD = struct.Struct("<II")  # bytes of the rows, and of the words
ROW_HEAD = struct.Struct("<BBB")  # bytes of the name of the element type; dimensions; whether strides follow the shape
MOST_INSIDE = 32 * 1024  # bytes of arrays
KEPT_LAYOUTS = 1024
Kind = tuple[np.dtype[Any], tuple[int, ...], "tuple[int, ...] | None"]


class RawBody(NamedTuple):
    """Body of a message.

    Attributes:
        words: bytes that its ends understand.
        arrays: arrays, which keep their strides.
    """

    words: bytes
    arrays: Sequence[Any]


class RawLayout(NamedTuple):
    """Layout of arrays inside a body.

    Attributes:
        lead: the bytes before the words.
        paddings: bytes before each array.
        places: shape, element type, position and strides of each array.
        end: length of the body.
    """

    lead: bytes
    paddings: tuple[bytes, ...]
    places: tuple[tuple[Any, ...], ...]
    end: int


def pack_raw(message: Outgoing, body: RawBody, limit: int) -> bool:
    """Put a body into a message.

    Args:
        message: gets it.
        body: captured before this returns, unless its arrays are large.
        limit: bytes of the largest message.

    Returns:
        False if it is too large.
    """
    words, arrays = body
    message.flags |= Flag.RAW | Flag.PLAIN
    if (layout := _layout_of(arrays, len(words))) is not None:
        pieces = [layout.lead, words]
        for padding, array in zip(layout.paddings, arrays):
            pieces += (padding, array.tobytes("A"))
        message.pickled = pieces
        return layout.end <= limit
    message.pickled = (words,)
    if (attached := message.attached) is NO_ATTACHMENTS:  # else it has notes
        message.attached = attached = Attachments()
    attached.tensors = tuple(map(Tensor, arrays))
    return len(words) + sum([each.nbytes for each in arrays]) <= limit


def open_raw(message: Incoming) -> RawBody:
    """Return the body of a message with ``Flag.RAW``, whose tensors are in place.

    Raises:
        SerializationError: it does not have the length that its rows say.
    """
    pickled = message.pickled
    if message.attached.arrays:
        return RawBody(bytes(pickled), message.attached.arrays)
    rows, size = LEAD.unpack_from(pickled)
    start = LEAD.size + rows
    layout = _parsed(bytes(pickled[LEAD.size : start]), size)
    if layout.end != len(pickled):
        raise SerializationError(f"a body of {len(pickled)} bytes whose rows say {layout.end}")
    if pickled.readonly:
        pickled = memoryview(bytearray(pickled))
    arrays = [np.ndarray(shape, dtype, pickled, place, strides) for shape, dtype, place, strides in layout.places]
    return RawBody(bytes(pickled[start : start + size]), arrays)


def _layout_of(arrays: Sequence[Any], words: int) -> RawLayout | None:
    """Return the layout of arrays that travel inside the body; ``None`` if they do not."""
    kinds, size = [], 0
    for array in arrays:
        flags = array.flags
        if not flags.forc:
            return None
        kinds.append((array.dtype, array.shape, None if flags.c_contiguous else array.strides))
        size += array.nbytes
    if size > MOST_INSIDE or (len(arrays) > 1 and may_share(arrays)):
        return None
    return _laid_out(tuple(kinds), words)


@lru_cache(maxsize=KEPT_LAYOUTS)
def _laid_out(kinds: tuple[Kind, ...], words: int) -> RawLayout | None:
    rows = []
    for dtype, shape, strides in kinds:
        if not (name := dtype_name(dtype)):
            return None
        numbers = struct.pack(f"<{len(shape)}Q", *shape) + struct.pack(f"<{len(strides or ())}q", *strides or ())
        rows.append(ROW_HEAD.pack(len(name), len(shape), strides is not None) + name + numbers)
    return _placed(b"".join(rows), kinds, words)


@lru_cache(maxsize=KEPT_LAYOUTS)
def _parsed(rows: bytes, words: int) -> RawLayout:
    kinds: list[Kind] = []
    position = 0
    while position < len(rows):
        length, dimensions, has_strides = ROW_HEAD.unpack_from(rows, position)
        start = position + ROW_HEAD.size + length
        dtype = find_dtype(name := rows[start - length : start])
        if dtype is None or dtype.hasobject:
            raise SerializationError(
                f"an array of type {name.decode(errors='replace')} arrived, which is not known here"
            )
        shape = struct.unpack_from(f"<{dimensions}Q", rows, start)
        position = start + 8 * dimensions
        strides = struct.unpack_from(f"<{dimensions}q", rows, position) if has_strides else None
        if strides is not None and not _are_dense(shape, strides, dtype.itemsize):
            raise SerializationError(
                f"an array with the shape {shape} and the strides {strides} arrived, which has gaps"
            )
        position += 8 * dimensions * has_strides
        kinds.append((dtype, shape, strides))
    return _placed(rows, kinds, words)


def _are_dense(shape: Sequence[int], strides: Sequence[int], size: int) -> bool:
    """Return whether an array fills its memory, with its first dimension as the innermost."""
    for length, stride in zip(shape, strides):
        if length != 1 and stride != size:
            return False
        size *= length
    return True


def _placed(rows: bytes, kinds: Sequence[Kind], words: int) -> RawLayout:
    position = LEAD.size + len(rows) + words
    paddings, places = [], []
    for dtype, shape, strides in kinds:
        padding = -(FRAME_HEAD.size + position) % TABLE_ALIGNMENT
        places.append((shape, dtype, position + padding, strides))
        paddings.append(bytes(padding))
        size = dtype.itemsize
        for length in shape:
            size *= length
        position += padding + size
    return RawLayout(LEAD.pack(len(rows), words) + rows, tuple(paddings), tuple(places), position)
