"""Messages to frames and back: a fixed struct header, tables, the pickle, then raw buffers.

    HEAD | [TABLES | one row per tensor | buffer lengths | extras] | pickle | padding | buffer | padding | buffer ...

The tensors' arrays are the first buffers, those that pickle left out of band follow. Buffers begin at multiples of 16
bytes from the frame's start, so that an array over a received frame is aligned.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from ...core.errors import SerializationError
from ..messages import Flag, Incoming, Outgoing

HEAD = struct.Struct("<BBHIQd")  # kind, flags, method, bytes of pickle, call id, seconds left (0: no deadline)
TABLES = struct.Struct("<HHII")  # tensors, references, buffers, bytes of tables after this struct
EXTRA = struct.Struct("<BI")  # interceptor, bytes
ALIGNMENT = 16
MAX_DIMENSIONS = 64

Parts = list[Any]  # bytes-like objects; a lane sends them one after another


def encode(message: Outgoing) -> Parts:
    """The frame of a message, as parts still to be joined or copied: big arrays are not copied here."""
    pickled = message.pickled
    if not (message.tensors or message.references or message.buffers or message.extras):
        return [_head(message, message.flags), pickled]
    rows, arrays = _tensor_rows(message)
    buffers = arrays + message.buffers
    lengths = [len(buffer) for buffer in buffers]
    extras = b"".join(EXTRA.pack(number, len(data)) + data for number, data in message.extras.items())
    tables = b"".join([*rows, struct.pack(f"<{len(lengths)}Q", *lengths), extras])
    counts = TABLES.pack(len(message.tensors), len(message.references), len(buffers), len(tables))
    start = b"".join([_head(message, message.flags | Flag.TABLES), counts, tables, pickled])
    parts: Parts = [start]
    position = len(start)
    for buffer, length in zip(buffers, lengths):
        if padding := -position % ALIGNMENT:
            parts.append(bytes(padding))
        parts.append(buffer)
        position += padding + length
    return parts


def decode(frame: Any, owned: bool, sender: int) -> Incoming:
    """Parse a frame.

    Args:
        frame: bytes-like, the whole frame.
        owned: nobody else uses its memory and it is writable, so that arrays may lie over it; otherwise they are copied.
        sender: rank of the worker it came from.
    """
    kind, flags, method, pickle_bytes, call_id, timeout = HEAD.unpack_from(frame)
    message = Incoming(kind, flags, method, call_id, timeout, sender)
    if not flags & Flag.TABLES:
        message.pickled = frame[HEAD.size : HEAD.size + pickle_bytes]
        return message
    view = memoryview(frame)
    tensors, references, buffers, table_bytes = TABLES.unpack_from(view, HEAD.size)
    position = HEAD.size + TABLES.size
    end = position + table_bytes
    shapes, position = _read_rows(view, position, tensors)
    lengths = struct.unpack_from(f"<{buffers}Q", view, position)
    _read_extras(message, view[position + 8 * buffers : end])
    message.pickled = view[end : end + pickle_bytes]
    message.references = [None] * references
    _read_buffers(message, view, end + pickle_bytes, lengths, shapes, owned)
    return message


def _head(message: Outgoing, flags: int) -> bytes:
    return HEAD.pack(message.kind, flags, message.method, len(message.pickled), message.call_id, message.timeout)


def _tensor_rows(message: Outgoing) -> tuple[list[bytes], list[Any]]:
    rows, arrays = [], []
    for tensor in message.tensors:
        array = tensor._array
        kind = array.dtype.str.encode()
        if array.dtype.hasobject:
            raise SerializationError("a tensor of Python objects cannot be sent; pass the objects in a list instead")
        shape = array.shape
        flags = 1 if tensor.requires_grad else 0
        rows.append(struct.pack(f"<BBB{len(kind)}s{len(shape)}Q", flags, len(kind), len(shape), kind, *shape))
        arrays.append(raw_bytes(array))
    return rows, arrays


def raw_bytes(array: Any) -> memoryview:
    """The array's memory in C order as a flat view of bytes; copied only if it is not contiguous."""
    if array.flags.c_contiguous and array.size:
        return memoryview(array).cast("B")
    flat: Any = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return memoryview(flat)


_dtypes: dict[bytes, np.dtype[Any]] = {}


def _dtype(name: bytes) -> np.dtype[Any]:
    dtype = _dtypes.get(name)
    if dtype is None:
        dtype = _dtypes[name] = np.dtype(name.decode())
    return dtype


def _read_rows(view: memoryview, position: int, count: int) -> tuple[list[tuple[int, Any, tuple[int, ...]]], int]:
    rows = []
    for _ in range(count):
        flags, name_bytes, dimensions = struct.unpack_from("<BBB", view, position)
        position += 3
        dtype = _dtype(bytes(view[position : position + name_bytes]))
        position += name_bytes
        rows.append((flags, dtype, struct.unpack_from(f"<{dimensions}Q", view, position)))
        position += 8 * dimensions
    return rows, position


def _read_extras(message: Incoming, view: memoryview) -> None:
    position = 0
    while position < len(view):
        number, length = EXTRA.unpack_from(view, position)
        position += EXTRA.size
        message.extras[number] = bytes(view[position : position + length])
        position += length


def _read_buffers(
    message: Incoming,
    view: memoryview,
    position: int,
    lengths: tuple[int, ...],
    shapes: list[tuple[int, Any, tuple[int, ...]]],
    owned: bool,
) -> None:
    for index, length in enumerate(lengths):
        position += -position % ALIGNMENT
        memory: Any = view[position : position + length]
        if not owned:
            memory = bytearray(memory)
        position += length
        if index < len(shapes):
            flags, dtype, shape = shapes[index]
            message.arrays.append(np.ndarray(shape, dtype, memory))
            message.requires_grad.append(flags & 1)
        else:
            message.buffers.append(memory)
