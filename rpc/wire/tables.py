"""Tables of a message: description of its arrays, and positions of its buffers in the frame.

Most messages have the same tables as an earlier one, at the same position, so parsed small tables are kept.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from .dtypes import dtype_name, find_dtype
from .header import FRAME_HEAD
from .layout import Place, decode_place, encode_place

# Numbers of tensors, references and buffers; bytes of extras, of rows and lengths, of the pickle
TABLES = struct.Struct("<IIIIQQ")
AFTER_TABLES = FRAME_HEAD.size + TABLES.size
TABLE_ALIGNMENT = 16  # of each buffer's position in the frame
EXTRA_HEAD = struct.Struct("<BQ")  # interceptor, bytes
TABLE_LENGTH = struct.Struct("<Q")
PLACED, SHARED = 2, 4  # flags of a row: a place follows it; its buffer is that of an earlier row
LARGEST_KEPT = 512  # bytes of tables that are kept
MOST_KEPT = 1024  # tables


class Row(NamedTuple):
    """Description of an array.

    Attributes:
        requires_grad: that of the tensor.
        name: name of the element type.
        dtype: the element type; ``None`` if this process does not know it.
        shape: shape of the array.
        buffer: number of the buffer in which the array is.
        place: place in the buffer; ``None`` if the array is all of the buffer, in C order.
    """

    requires_grad: bool
    name: bytes
    dtype: np.dtype[Any] | None
    shape: tuple[int, ...]
    buffer: int
    place: Place | None


class Tables(NamedTuple):
    """Contents of the tables: the arrays, begin and end of each buffer, and how many of the buffers are arrays'."""

    rows: tuple[Row, ...]
    spans: tuple[tuple[int, int], ...]
    taken: int


@lru_cache(maxsize=1024)
def encode_row(dtype: np.dtype[Any], shape: tuple[int, ...], requires_grad: bool) -> bytes:
    """Return the row of an array without a place; empty if its type has no name.

    Args:
        dtype: its element type.
        shape: its shape.
        requires_grad: that of the tensor.
    """
    name = dtype_name(dtype)
    data = struct.pack(f"<BBB{len(name)}s{len(shape)}Q", requires_grad, len(name), len(shape), name, *shape)
    return data if name else b""


def encode_extras(extras: dict[int, bytes]) -> bytes:
    """Return the extras of a message, by the number of their interceptor, as bytes."""
    return b"".join([EXTRA_HEAD.pack(number, len(data)) + data for number, data in extras.items()])


def with_place(row: bytes, place: Place | None) -> bytes:
    """Return a row, with the array's place if it has one."""
    if place is None:
        return row
    flags = PLACED if place.shared is None else PLACED | SHARED
    return bytes([row[0] | flags]) + row[1:] + encode_place(place)


def read_tables(data: bytes, tensors: int, buffers: int, position: int) -> Tables:
    """Parse rows and lengths of buffers.

    Args:
        data: bytes of the rows and lengths.
        tensors: number of rows.
        buffers: number of lengths.
        position: first position in the frame at which a buffer may begin.
    """
    return (known if len(data) <= LARGEST_KEPT else _parse)(data, tensors, buffers, position)


def _parse(data: bytes, tensors: int, buffers: int, position: int) -> Tables:
    rows: list[Row] = []
    start = taken = 0
    for _ in range(tensors):
        flags, name_bytes, dimensions = data[start : start + 3]
        end = start + 3 + name_bytes
        name, shape = data[start + 3 : end], struct.unpack_from(f"<{dimensions}Q", data, end)
        start, place = end + 8 * dimensions, None
        if flags & (PLACED | SHARED):
            place, start = decode_place(memoryview(data), start, dimensions, bool(flags & SHARED))
        if place is None or place.shared is None:
            buffer, taken = taken, taken + 1
        else:
            buffer = rows[place.shared].buffer
        rows.append(Row(bool(flags & 1), name, find_dtype(name), shape, buffer, place))
    return Tables(tuple(rows), _spans(struct.unpack_from(f"<{buffers}Q", data, start), position), taken)


known = lru_cache(maxsize=MOST_KEPT)(_parse)


def _spans(lengths: tuple[int, ...], position: int) -> tuple[tuple[int, int], ...]:
    spans: list[tuple[int, int]] = []
    for length in lengths:
        position += -position % TABLE_ALIGNMENT
        spans.append((position, position + length))
        position += length
    return tuple(spans)
