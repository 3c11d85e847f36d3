"""Frame of a message, encoded and decoded: a header of fixed size, tables, the pickle, then raw buffers.

    HEAD | [TABLES | one row per tensor | buffer lengths | extras] | pickle | padding | buffer | padding | buffer ...

The first buffers are the arrays of the tensors. The buffers that pickle left out of band follow. An array that is not in C
order, or shares its memory with another array, has a place in a buffer (``layout.py``). Buffers begin at multiples of 16
bytes from the frame's start, so that an array over a received frame is aligned.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from ...base.errors import SerializationError
from ..lanes.large.scattered import ScatteredFrame
from .header import FRAME_HEAD, Flag
from .layout import lay_out, may_share, placed, raw_bytes
from .libraries.array_library import LibraryTensor
from .messages import NO_ATTACHMENTS, NONE_YET, OUTSIDE_WINDOWS, Attachments, Incoming, Outgoing
from .small_frames import encode_small
from .tables import (
    AFTER_TABLES,
    EXTRA_HEAD,
    TABLE_ALIGNMENT,
    TABLE_LENGTH,
    TABLES,
    Row,
    encode_extras,
    encode_row,
    read_tables,
    with_place,
)

SMALL_FRAME_BYTES = 4096  # a frame up to this size may be one part; an array up to this size is copied, not viewed
BODY = FRAME_HEAD.size  # position of the first byte after the header

M = TypeVar("M", bound=Incoming)
Parts = list[Any]  # bytes-like objects; a lane sends them one after another


def encode(message: Outgoing) -> Parts:
    """Return the frame of a message in parts, and set the message's ``size`` to that of the frame.

    Large arrays are not copied here.
    """
    attached = message.attached
    if not (attached.tensors or attached.references or attached.buffers or attached.extras):
        head = FRAME_HEAD.pack(message.kind, message.flags, message.method, message.call_id, message.timeout)
        size = message.size = BODY + sum(map(len, message.pickled))
        whole = [head, *message.pickled]
        return [b"".join(whole)] if size <= SMALL_FRAME_BYTES else whole
    if (small := encode_small(message)) is not None:
        return [small]
    rows, buffers = _tensor_rows(attached.tensors)
    buffers += attached.buffers
    lengths = list(map(len, buffers))
    tables = b"".join([*rows, *map(TABLE_LENGTH.pack, lengths)])
    extras = encode_extras(attached.extras) if attached.extras else b""
    pickle_bytes = sum(map(len, message.pickled))
    head = FRAME_HEAD.pack(message.kind, message.flags | Flag.TABLES, message.method, message.call_id, message.timeout)
    counts = TABLES.pack(len(rows), len(attached.references), len(buffers), len(extras), len(tables), pickle_bytes)
    start = b"".join((head, counts, tables, extras))
    parts: Parts = [start, *message.pickled]
    position = len(start) + pickle_bytes
    for buffer, length in zip(buffers, lengths):
        if padding := -position % TABLE_ALIGNMENT:
            parts.append(bytes(padding))
        parts.append(buffer)
        position += padding + length
    message.size = position
    return parts


def decode(frame: Any, owned: bool, message: M, session: Any = None) -> M:
    """Parse a frame into a message that is new, and return the message.

    Args:
        frame: bytes-like, the whole frame, or a ``ScatteredFrame``.
        owned: the frame's memory is writable and nothing else uses it, so arrays may use it; otherwise they are copied.
            Arrays always use the pieces of a scattered frame.
        message: the message.
        session: the session on which it came.
    """
    message.session, message.attached, message.extras = session, NO_ATTACHMENTS, NONE_YET
    scattered = type(frame) is ScatteredFrame
    front = frame.front if scattered else frame
    _, message.flags, message.method, message.call_id, message.timeout = FRAME_HEAD.unpack_from(front)
    problem = frame.problem if scattered else ""
    message.size = 0 if message.method in OUTSIDE_WINDOWS else len(frame)
    if problem or message.flags & Flag.TABLES:
        message.attached = attached = Attachments()
        attached.problem = problem
    if message.flags & Flag.TABLES:
        message.pickled = b""
        _decode_tables(message, attached, frame, memoryview(front), owned)
    elif problem:
        message.pickled = b""
    elif scattered:
        message.pickled = frame.read(BODY, len(frame) - BODY)
    elif message.flags & Flag.RAW:
        message.pickled = memoryview(frame)[BODY:]  # not copied: its arrays use it
    else:
        message.pickled = frame[BODY:]
    return message


def pickle_of(front: memoryview) -> memoryview:
    """Return the pickle in the beginning of a frame that has tables.

    Raises:
        SerializationError: the frame has no tables, or ends before its pickle does.
    """
    try:
        flags = FRAME_HEAD.unpack_from(front)[1]
        _, _, _, extra_bytes, table_bytes, pickle_bytes = TABLES.unpack_from(front, BODY)
    except struct.error:
        flags = 0
    if not flags & Flag.TABLES or AFTER_TABLES + table_bytes + extra_bytes + pickle_bytes > len(front):
        raise SerializationError("a frame without a whole pickle")
    start = AFTER_TABLES + table_bytes + extra_bytes
    return front[start : start + pickle_bytes]


def _decode_tables(message: Incoming, made: Attachments, frame: Any, view: memoryview, owned: bool) -> None:
    tensors, references, buffers, extra_bytes, table_bytes, pickle_bytes = TABLES.unpack_from(view, BODY)
    extras = AFTER_TABLES + table_bytes
    start = extras + extra_bytes
    if extra_bytes:
        _read_extras(message, view[extras:start])
    if references:
        if references > len(view):  # impossible, because each takes some bytes of the extras
            raise SerializationError(f"a frame of {len(view)} bytes claims to hold {references} references")
        made.references = [None] * references
    if made.problem:  # the arrays are missing; the references, which are in the tables, have arrived
        return
    end = start + pickle_bytes
    if not (tensors or buffers):
        message.pickled = frame.read(start, pickle_bytes) if type(frame) is ScatteredFrame else view[start:end]
        return
    rows, spans, taken = read_tables(bytes(view[AFTER_TABLES:extras]), tensors, buffers, end)
    memories: list[Any]
    if type(frame) is ScatteredFrame:
        message.pickled = frame.read(start, pickle_bytes)
        memories = [frame.read(position, stop - position) for position, stop in spans]
    else:
        message.pickled = view[start:end]
        memories = []
        for position, stop in spans:
            memory = view[position:stop]
            memories.append(memory if owned else bytearray(memory))
    made.buffers = memories[taken:]
    made.arrays, made.requires_grad = [], []
    for row in rows:  # one loop, because two comprehensions are slower
        requires_grad, _, dtype, shape, buffer, place = row
        usual = dtype is not None and place is None
        array = np.ndarray(shape, dtype, memories[buffer]) if usual else _array(made, row, memories[buffer])
        made.arrays.append(array)
        made.requires_grad.append(requires_grad)


def _tensor_rows(tensors: Sequence[Any]) -> tuple[list[bytes], list[Any]]:
    rows: list[bytes] = []
    arrays: list[Any] = []
    alone, gaps = set[int](), False  # one loop, quick for few tensors in C order, the usual case
    for tensor in tensors:
        array = tensor._array
        if not (row := encode_row(array.dtype, array.shape, tensor._requires_grad)):
            raise SerializationError(
                f"a tensor of {array.dtype} cannot be sent; pass Python objects in a list, and records in a NumPy array"
            )
        if type(tensor) is LibraryTensor and tensor.alone:
            alone.add(len(arrays))
        rows.append(row)
        arrays.append(array)
        if not array.flags.c_contiguous:
            gaps = True
    if not gaps and (len(arrays) - len(alone) < 2 or not may_share(_others(arrays, alone))):
        return rows, [array.tobytes() if array.nbytes <= SMALL_FRAME_BYTES else raw_bytes(array) for array in arrays]
    places, buffers = lay_out(arrays, alone)
    return list(map(with_place, rows, places)), list(buffers)


def _others(arrays: list[Any], alone: set[int]) -> list[Any]:
    return [array for index, array in enumerate(arrays) if index not in alone] if alone else arrays


def _read_extras(message: Incoming, view: memoryview) -> None:
    if not view:
        return
    message.extras, position = {}, 0
    while position < len(view):
        number, length = EXTRA_HEAD.unpack_from(view, position)
        position += EXTRA_HEAD.size
        message.extras[number] = bytes(view[position : position + length])
        position += length


def _array(made: Attachments, row: Row, memory: Any) -> Any:
    if row.dtype is not None and row.place is not None:
        return placed(row.shape, row.dtype, memory, row.place)
    # Only this call fails, when its message is opened: the session stays open.
    unknown = row.name.decode(errors="replace")
    made.problem = f"a tensor of type {unknown} arrived, which this worker does not know; install ml_dtypes here"
    return np.ndarray((len(memory),), np.uint8, memory)
