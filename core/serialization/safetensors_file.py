"""Files in the safetensors format, through the library, with a SHA-256 of the whole file among the metadata.

The library neither checks the contents nor refuses a header with a name twice: both are done here.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from ..dtypes import dtype_by_name
from ..types import Array, DType

CHECKSUM = "telegrad.sha256"

# The checksum is that of the file with zeros in the place of the checksum.
_BLANK = b"0" * 64
_ENTRY = b'"%b":"' % CHECKSUM.encode()
_LENGTH = struct.Struct("<Q")
_PIECE = 1 << 20  # bytes that are hashed at a time

# The library's names of the dtypes that it reads into NumPy arrays.
_LABELS = {
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
}


def fits(dtype: DType) -> bool:
    """Return whether arrays of a dtype can be written."""
    return dtype.name in _LABELS


def write_file(path: str, arrays: dict[str, Array], metadata: dict[str, str]) -> None:
    """Write arrays by name, with a checksum, and wait until they are on the disk.

    Args:
        path: the file to create.
        arrays: of dtypes that fit; an array in row-major order is not copied.
        metadata: texts to store beside them.

    Raises:
        OSError: the file exists, or cannot be written.
    """
    ordered = {name: array if array.flags.c_contiguous else array.copy() for name, array in arrays.items()}
    with open(path, "xb") as file:
        mode = os.fstat(file.fileno()).st_mode
    try:
        save_file(ordered, path, {CHECKSUM: _BLANK.decode(), **metadata})
    except SafetensorError as error:
        raise OSError(f"{path} cannot be written: {error}") from error
    os.chmod(path, mode)  # the library replaces the file by one that only its owner may read
    with open(path, "r+b", buffering=0) as file:
        checksum, place = _checksum(file)
        file.seek(place)
        file.write(checksum.encode())
        # Without this, a machine that loses power may keep the file's name and lose its contents.
        os.fsync(file.fileno())


def read_file(file: Any) -> tuple[dict[str, Array], dict[str, str]]:
    """Return the arrays of an open file by name, and its metadata.

    Raises:
        ValueError: the file is not in the format, not complete, or not what its checksum says.
        ImportError: it holds bfloat16, and the package ``ml_dtypes`` is not installed.
    """
    _check_header(file)
    # The library opens files by name, and the name may mean another file by now.
    path = f"/proc/self/fd/{file.fileno()}"
    try:
        with safe_open(path, framework="np", backend="pread") as opened:
            metadata = opened.metadata() or {}
            if CHECKSUM in metadata and metadata[CHECKSUM] != _checksum(file)[0]:
                raise DamagedError
            return {name: _tensor(opened, name) for name in opened.keys()}, metadata  # noqa: SIM118
    except SafetensorError as error:
        raise ValueError(str(error)) from error


class DamagedError(ValueError):
    """A file's contents do not have its checksum."""


def _checksum(file: Any) -> tuple[str, int]:
    """Return the checksum of a file, and the place of the stored one."""
    header = _header(file)
    place = header.find(_ENTRY) + len(_ENTRY)
    digest = hashlib.sha256(header[:place] + _BLANK + header[place + len(_BLANK) :])
    piece = memoryview(bytearray(_PIECE))
    while count := file.readinto(piece):
        digest.update(piece[:count])
    return digest.hexdigest(), place


def _header(file: Any) -> bytes:
    """Return the length (8 bytes, little-endian) and the JSON with which the file begins."""
    file.seek(0)
    start = file.read(_LENGTH.size)
    size = os.fstat(file.fileno()).st_size
    if len(start) < _LENGTH.size or (length := _LENGTH.unpack(start)[0]) > size - _LENGTH.size:
        pickled = start.startswith((b"\x80\2", b"\x80\3", b"\x80\4", b"\x80\5"))
        raise ValueError(_PICKLE if pickled else f"its header does not fit into its {size} bytes")
    return start + file.read(length)


_PICKLE = (
    "it is a pickle, which can run code, and not of the form of torch.save(); there, save a state dict with safetensors"
)


def _check_header(file: Any) -> None:
    try:
        json.loads(_header(file)[_LENGTH.size :], object_pairs_hook=_unique)
    except json.JSONDecodeError as error:
        raise ValueError(f"its header is not JSON: {error}") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("its header has a name twice")
    return found


def _tensor(opened: Any, name: str) -> Array:
    label = opened.get_slice(name).get_dtype()
    if label not in _LABELS.values():
        raise ValueError(f"tensor {name!r} is of type {label!r}, which NumPy does not have")
    if label == "BF16":
        dtype_by_name("bfloat16")  # raises where its package is missing
    array: Array = opened.get_tensor(name)
    return array
