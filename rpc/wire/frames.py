"""Messages to frames and back: a fixed struct header, tables, the pickle, then raw buffers.

    HEAD | [TABLES | one row per tensor | buffer lengths | extras] | pickle | padding | buffer | padding | buffer ...

The tensors' arrays are the first buffers, those that pickle left out of band follow. An array that is not in C order, or shares
its memory with another one, has a place in a buffer (``layout.py``). Buffers begin at multiples of 16
bytes from the frame's start, so that an array over a received frame is aligned.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ...core.errors import SerializationError
from ..lanes.large.scattered import ScatteredFrame
from ..messages import Incoming, Outgoing
from .dtypes import dtype_name, find_dtype
from .header import HEAD, Flag
from .layout import Place, decode_place, encode_place, lay_out, may_share, placed, raw_bytes

TABLES = struct.Struct("<IIIQQ")  # tensors, references, buffers, bytes of the tables after this struct, bytes of pickle
EXTRA = struct.Struct("<BQ")  # interceptor, bytes
ALIGNMENT = 16
PLACED, SHARED = 2, 4  # flags of a row: a place follows it; its buffer is that of an earlier row

M = TypeVar("M", bound=Incoming)
Parts = list[Any]  # bytes-like objects; a lane sends them one after another
Read = Callable[[int, int], Any]  # position and length in a frame, to the memory of one buffer


def encode(message: Outgoing) -> Parts:
    """Return the frame of a message, as parts still to be joined or copied: big arrays are not copied here."""
    if not (message.tensors or message.references or message.buffers or message.extras):
        head = HEAD.pack(message.kind, message.flags, message.method, message.call_id, message.timeout)
        return [head, *message.pickled]
    rows, arrays = _tensor_rows(message.tensors)
    buffers = [*arrays, *message.buffers]
    lengths = [len(buffer) for buffer in buffers]
    tables = b"".join([*rows, struct.pack(f"<{len(lengths)}Q", *lengths), *_extras(message.extras)])
    pickle_bytes = sum(map(len, message.pickled))
    counts = TABLES.pack(len(message.tensors), len(message.references), len(buffers), len(tables), pickle_bytes)
    start = b"".join([_head(message, message.flags | Flag.TABLES), counts, tables])
    parts: Parts = [start, *message.pickled]
    position = len(start) + pickle_bytes
    for buffer, length in zip(buffers, lengths):
        if padding := -position % ALIGNMENT:
            parts.append(bytes(padding))
        parts.append(buffer)
        position += padding + length
    return parts


def decode(frame: Any, owned: bool, sender: int, make: type[M]) -> M:
    """Parse a frame.

    Args:
        frame: bytes-like, the whole frame, or a ``ScatteredFrame``.
        owned: nobody else uses its memory and it is writable, so that arrays may lie over it; otherwise they are copied.
            The pieces of a scattered frame always are used as they are.
        sender: rank of the worker it came from.
        make: the class of the result.
    """
    scattered = type(frame) is ScatteredFrame
    front = frame.front if scattered else frame
    kind, flags, method, call_id, timeout = HEAD.unpack_from(front)
    message = make(kind, flags, method, call_id, timeout, sender)
    if scattered:
        message.problem = frame.problem
    if not flags & Flag.TABLES:
        if not message.problem:
            message.pickled = frame.read(HEAD.size, len(frame) - HEAD.size) if scattered else frame[HEAD.size :]
        return message
    view = memoryview(front)
    tensors, references, buffers, table_bytes, pickle_bytes = TABLES.unpack_from(view, HEAD.size)
    position = HEAD.size + TABLES.size
    end = position + table_bytes
    rows, position = _read_rows(view, position, tensors)
    lengths = struct.unpack_from(f"<{buffers}Q", view, position)
    _read_extras(message, view[position + 8 * buffers : end])
    if references > len(view):  # each takes some bytes of the extras
        raise SerializationError(f"a frame of {len(view)} bytes claims to hold {references} references")
    message.references = [None] * references
    if message.problem:  # references are in the tables: they arrived
        return message
    message.arrays, message.requires_grad, message.buffers = [], [], []
    read: Read = frame.read if scattered else partial(_slice if owned else _copy, view)
    message.pickled = frame.read(end, pickle_bytes) if scattered else view[end : end + pickle_bytes]
    _read_buffers(message, read, end + pickle_bytes, lengths, rows)
    return message


def _slice(view: memoryview, position: int, length: int) -> memoryview:
    return view[position : position + length]


def _copy(view: memoryview, position: int, length: int) -> bytearray:
    return bytearray(view[position : position + length])


def _extras(extras: dict[int, bytes]) -> list[bytes]:
    return [EXTRA.pack(number, len(data)) + data for number, data in extras.items()] if extras else []


def _head(message: Outgoing, flags: int) -> bytes:
    return HEAD.pack(message.kind, flags, message.method, message.call_id, message.timeout)


def _tensor_rows(tensors: Sequence[Any]) -> tuple[list[bytes], list[Any]]:
    rows, arrays, gaps = [], [], False  # in one loop: most messages have few tensors, in C order
    for tensor in tensors:
        array = tensor._array
        if not (row := _row(array.dtype, array.shape, tensor.requires_grad)):
            raise SerializationError(
                f"a tensor of {array.dtype} cannot be sent; pass Python objects in a list, and records in a NumPy array"
            )
        rows.append(row)
        arrays.append(array)
        if not array.flags.c_contiguous:
            gaps = True
    if not gaps and (len(arrays) < 2 or not may_share(arrays)):
        return rows, [raw_bytes(array) for array in arrays] if arrays else arrays
    places, buffers = lay_out(arrays)
    return [row if place is None else _placed_row(row, place) for row, place in zip(rows, places)], buffers


def _placed_row(row: bytes, place: Place) -> bytes:
    flags = PLACED if place.shared is None else PLACED | SHARED
    return bytes([row[0] | flags]) + row[1:] + encode_place(place)


@lru_cache(maxsize=1024)
def _row(dtype: np.dtype[Any], shape: tuple[int, ...], requires_grad: bool) -> bytes:
    """Return the row of a tensor that has no place; empty if its type has no name."""
    name = dtype_name(dtype)
    data = struct.pack(f"<BBB{len(name)}s{len(shape)}Q", requires_grad, len(name), len(shape), name, *shape)
    return data if name else b""


class Row(NamedTuple):
    """Description of a tensor: whether it requires a gradient, name of the dtype, shape, and its place if that is not all of
    a buffer of its own."""

    requires_grad: bool
    name: bytes
    shape: tuple[int, ...]
    place: Place | None = None


def _read_rows(view: memoryview, position: int, count: int) -> tuple[list[Row], int]:
    rows: list[Row] = []
    for _ in range(count):
        end = position + 3 + view[position + 1] + 8 * view[position + 2]
        row = _parse_row(bytes(view[position:end]))
        if flags := view[position] & (PLACED | SHARED):
            place, end = decode_place(view, end, len(row.shape), bool(flags & SHARED))
            row = row._replace(place=place)
        rows.append(row)
        position = end
    return rows, position


@lru_cache(maxsize=1024)
def _parse_row(row: bytes) -> Row:
    flags, name_bytes, dimensions = row[:3]
    shape = struct.unpack_from(f"<{dimensions}Q", row, 3 + name_bytes)
    return Row(bool(flags & 1), row[3 : 3 + name_bytes], shape)


def _read_extras(message: Incoming, view: memoryview) -> None:
    position = 0
    while position < len(view):
        number, length = EXTRA.unpack_from(view, position)
        position += EXTRA.size
        message.extras[number] = bytes(view[position : position + length])
        position += length


def _read_buffers(message: Incoming, read: Read, position: int, lengths: tuple[int, ...], rows: list[Row]) -> None:
    memories = []
    for length in lengths:
        position += -position % ALIGNMENT
        memories.append(read(position, length))
        position += length
    taken = 0
    used: list[Any] = []  # the memory of each tensor
    for row in rows:
        if row[3] is None or row[3].shared is None:
            used.append(memories[taken])
            taken += 1
        else:
            used.append(used[row[3].shared])
        _add_array(message, row, used[-1])
    message.buffers = memories[taken:]


def _add_array(message: Incoming, row: Row, memory: Any) -> None:
    requires_grad, name, shape, place = row
    dtype = find_dtype(name)
    if dtype is None:  # this call fails, when it is opened; the connection is sound
        unknown = name.decode(errors="replace")
        message.problem = f"a tensor of type {unknown} arrived, which this worker does not know; install ml_dtypes here"
        dtype, shape, place = np.dtype(np.uint8), (len(memory),), None
    message.arrays.append(np.ndarray(shape, dtype, memory) if place is None else placed(shape, dtype, memory, place))
    message.requires_grad.append(requires_grad)
