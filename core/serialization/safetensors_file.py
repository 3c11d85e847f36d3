"""The safetensors format: the header's length (8 bytes), the header (JSON), the elements of all tensors.

Arrays are read straight into memory of their own, and written in pieces: neither way needs a second copy of them.
https://huggingface.co/docs/safetensors/index#format
"""

from __future__ import annotations

import hashlib
import importlib
import json
import math
import struct
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..types import Array, DType

CHECKSUM = "telegrad.sha256"

_BLANK = "0" * 64
_LENGTH = struct.Struct("<Q")
_PIECE = 1 << 20  # bytes that are hashed while they are still in the processor's cache
_LONGEST_HEADER = 100_000_000  # as for other readers

# The last ones are not NumPy's own.
_NAMES = {
    "bool": "BOOL",
    "uint8": "U8",
    "int8": "I8",
    "uint16": "U16",
    "int16": "I16",
    "uint32": "U32",
    "int32": "I32",
    "uint64": "U64",
    "int64": "I64",
    "float16": "F16",
    "float32": "F32",
    "float64": "F64",
    "complex64": "C64",
    "bfloat16": "BF16",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
}
_TYPES = {label: name for name, label in _NAMES.items()}


def fits(dtype: DType) -> bool:
    """Whether the format has a name for a type."""
    return dtype.name in _NAMES


def write_tensors(file: Any, arrays: dict[str, Array], metadata: dict[str, str]) -> None:
    """Write arrays by name, whose types must fit, with a checksum of the whole file among the metadata."""
    # By falling size of elements, so that each array is aligned.
    ordered = dict(sorted(arrays.items(), key=lambda item: (-item[1].itemsize, item[0])))
    start = file.tell()
    header = _header(ordered, {CHECKSUM: _BLANK, **metadata})
    digest = hashlib.sha256(header)
    _write(file, memoryview(header))
    for array in ordered.values():
        for piece in _pieces(array):
            digest.update(piece)
            _write(file, piece)
    end = file.tell()
    file.seek(start)
    _write(file, memoryview(_header(ordered, {CHECKSUM: digest.hexdigest(), **metadata})))
    file.seek(end)


def _write(file: Any, data: memoryview) -> None:
    while data:  # an unbuffered file may take less than it is given
        data = data[file.write(data) :]


def _header(ordered: dict[str, Array], metadata: dict[str, str]) -> bytes:
    entries: dict[str, Any] = {"__metadata__": metadata}
    offset = 0
    for name, array in ordered.items():
        place = [offset, offset + array.nbytes]
        entries[name] = {"dtype": _NAMES[array.dtype.name], "shape": array.shape, "data_offsets": place}
        offset += array.nbytes
    encoded = json.dumps(entries).encode()
    encoded += b" " * (-len(encoded) % 8)
    return _LENGTH.pack(len(encoded)) + encoded


def _pieces(array: Array) -> Iterator[memoryview]:
    """The elements in row-major order, little-endian: copies, since somebody may be training: what is hashed is written."""
    if array.dtype.byteorder == ">" or (sys.byteorder == "big" and array.dtype.byteorder == "="):
        array = array.astype(array.dtype.newbyteorder("<"))
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    copy = np.empty(min(flat.size, _PIECE), np.uint8)
    for start in range(0, flat.size, _PIECE):
        piece = copy[: min(flat.size - start, _PIECE)]
        piece[...] = flat[start : start + _PIECE]
        yield piece.data


def read_tensors(file: Any) -> tuple[dict[str, Array], dict[str, str], str]:
    """The arrays by name, the metadata, and the checksum that a file of these contents has (if it has one at all).

    Raises:
        ValueError: it is not in the format, or not whole.
        ImportError: it holds numbers of a type that only ``ml_dtypes`` knows.
    """
    start = file.tell()
    size = file.seek(0, 2) - start
    file.seek(start)
    header = _read_header(file, size)
    entries = _parsed(header)
    metadata = entries.pop("__metadata__", {})
    digest = hashlib.sha256(_LENGTH.pack(len(header)))
    digest.update(header.replace(metadata.get(CHECKSUM, _BLANK).encode(), _BLANK.encode(), 1))
    checked, arrays, offset = CHECKSUM in metadata, {}, 0
    for name, entry in sorted(entries.items(), key=lambda item: item[1]["data_offsets"]):
        arrays[name] = array = _allocated(name, entry, offset, size - _LENGTH.size - len(header))
        offset += array.nbytes
        elements = array.reshape(-1).view(np.uint8).data
        for begin in range(0, len(elements), _PIECE):
            piece = elements[begin : begin + _PIECE]
            _fill(file, piece)
            if checked:
                digest.update(piece)
    if offset != size - _LENGTH.size - len(header):
        raise ValueError(f"its tensors end at byte {offset + _LENGTH.size + len(header)}, and it has {size} bytes")
    return arrays, metadata, digest.hexdigest()


def _parsed(header: bytes) -> Any:
    try:
        entries = json.loads(header, object_pairs_hook=_without_doubles)
    except json.JSONDecodeError as error:
        raise ValueError(f"its header is no JSON: {error}") from None
    if not isinstance(entries, dict):
        raise ValueError(f"its header is a {type(entries).__name__}, not an object")
    return entries


# How pickles and zip archives begin.
_PICKLES = (b"PK\x03\x04", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")


def _read_header(file: Any, size: int) -> bytes:
    if size < _LENGTH.size:
        raise ValueError(f"it has {size} bytes only")
    start = _exactly(file, _LENGTH.size)
    (length,) = _LENGTH.unpack(start)
    if length > min(size - _LENGTH.size, _LONGEST_HEADER):
        if start.startswith(_PICKLES):
            raise ValueError(
                "it is a pickle, or an archive of them, as torch.save() writes it, and pickles can run code; there, write the "
                "state dict with safetensors.torch.save_file()"
            )
        raise ValueError(f"its header has {length} bytes, and the file {size}")
    return _exactly(file, length)


def _exactly(file: Any, size: int) -> bytes:
    data = bytearray(size)
    _fill(file, memoryview(data))
    return bytes(data)


def _fill(file: Any, target: memoryview) -> None:
    while target:
        count = file.readinto(target)
        if not count:
            raise ValueError("it became shorter while it was read")
        target = target[count:]


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("its header has a name twice")
    return found


def _allocated(name: str, entry: dict[str, Any], offset: int, available: int) -> Array:
    """An array for a tensor that begins at ``offset``. What the header says is checked before memory is taken for it."""
    if entry["dtype"] not in _TYPES:
        raise ValueError(f"tensor {name!r} is of type {entry['dtype']!r}, which is unknown here")
    dtype, shape = _dtype(_TYPES[entry["dtype"]]), entry["shape"]
    if not all(type(length) is int and length >= 0 for length in shape):
        raise ValueError(f"tensor {name!r} has the shape {shape}")
    begin, end = entry["data_offsets"]
    if begin != offset or end - begin != math.prod(shape) * dtype.itemsize or end > available:
        raise ValueError(f"tensor {name!r} is said to lie at {begin} to {end}, where it does not fit")
    return np.empty(shape, dtype)


def _dtype(name: str) -> DType:
    try:
        dtype = np.dtype(name)
        return dtype if sys.byteorder == "little" else dtype.newbyteorder("<")
    except TypeError:
        pass
    try:
        found: DType = np.dtype(getattr(importlib.import_module("ml_dtypes"), name))
    except ImportError:
        raise ImportError(
            f"the file holds numbers of type {name}, which needs the package ml_dtypes; install it"
        ) from None
    return found
