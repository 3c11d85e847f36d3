"""``save`` and ``load``: nested Python objects with tensors, in one safetensors file, without pickle.

The tensors are the file's tensors, under names made of their places ("model.0.weight"), so any reader of the format sees
them. What they hang on is JSON in the metadata, beside a SHA-256 of everything. The file is written under another name and
moved into place when it is complete.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import struct
import uuid
from collections import OrderedDict
from typing import Any, BinaryIO, TypeAlias

import numpy as np
from safetensors import SafetensorError, safe_open

from .errors import TelegradError
from .tensor import Tensor
from .types import Array

Path: TypeAlias = str | os.PathLike[str]

_STRUCTURE, _CHECKSUM = "telegrad.structure", "telegrad.sha256"
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
}


class CheckpointError(TelegradError, RuntimeError):
    """A file is not what ``save`` wrote: it was cut off, altered, or is something else. The message names it."""


def save(obj: Any, path: Path) -> None:
    """Write ``obj`` to a file, in one piece or not at all: who reads meanwhile sees the former file.

    Args:
        obj: a tensor, array, ``None``, bool, int, float or string, or dicts, lists and tuples of such. Tensors over the very
            same elements share memory again after ``load``; views of parts of others become tensors of their own.
        path: where to; a file that is there is replaced.

    Raises:
        TypeError: an object of another kind; the message says where in ``obj`` it is.
        ValueError: a container holds itself.
    """
    writer = _Encoder()
    structure = json.dumps(writer.encode(obj, "checkpoint", ()))
    target = os.path.realpath(path)
    temporary = f"{target}.{uuid.uuid4().hex}.tmp"
    try:
        with open(temporary, "xb") as file:
            _write(file, structure, writer.arrays)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        if os.path.exists(temporary):
            os.remove(temporary)
        raise
    _sync_folder(os.path.dirname(target))


def load(path: Path) -> Any:
    """Read what ``save`` wrote. Of a safetensors file from elsewhere: its tensors by name.

    Raises:
        CheckpointError: the file was cut off or altered, or is no safetensors file.
        FileNotFoundError: there is none.
    """
    try:
        # "numpy" is the only framework that safetensors itself needs nothing for.
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            arrays = {name: _writable(file.get_tensor(name)) for name in file.keys()}  # noqa: SIM118 - not a dict
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"{os.fspath(path)} cannot be read as a checkpoint: {error}") from error
    if _STRUCTURE not in metadata and _CHECKSUM not in metadata:
        return {name: Tensor(array) for name, array in arrays.items()}
    structure = metadata.get(_STRUCTURE, "")
    if metadata.get(_CHECKSUM) != _checksum(structure, sorted(arrays.items())):
        raise CheckpointError(
            f"{os.fspath(path)} is damaged: its contents do not have the checksum they were saved with; "
            "use another copy of it, or an earlier checkpoint"
        )
    return _Decoder(arrays).decode(json.loads(structure))


# -- objects to JSON and arrays


class _Encoder:
    """Turns an object into JSON values, and collects its arrays by name."""

    def __init__(self) -> None:
        self.arrays: dict[str, Array] = {}
        self._regions: dict[Any, str] = {}
        self._objects: dict[int, int] = {}
        self._open: set[int] = set()

    def encode(self, obj: Any, path: str, label: tuple[str, ...]) -> Any:
        kind = type(obj)
        if obj is None or kind in (bool, int, str):
            return obj
        if kind is float:
            return obj if math.isfinite(obj) else {"float": repr(obj)}
        if isinstance(obj, Tensor):
            return {**self._stored("tensor", obj.numpy(force=True), obj, path, label), "grad": obj.requires_grad}
        if isinstance(obj, np.ndarray):
            return self._stored("array", obj, obj, path, label)
        if isinstance(obj, np.generic):
            return self._stored("scalar", np.asarray(obj), obj, path, label)
        if kind in (list, tuple, dict, OrderedDict):
            return self._container(obj, path, label)
        raise TypeError(
            f"{path} is of class {kind.__name__}, which cannot be saved; a checkpoint holds tensors, arrays, None, bools, "
            "numbers and strings, in dicts, lists and tuples (of a module or optimizer, save state_dict())"
        )

    def _container(self, obj: Any, path: str, label: tuple[str, ...]) -> Any:
        if id(obj) in self._open:
            raise ValueError(f"{path} holds itself, which cannot be saved")
        self._open.add(id(obj))
        try:
            if isinstance(obj, dict):
                return {"dict": [self._pair(key, value, path, label) for key, value in obj.items()]}
            items = [self.encode(item, f"{path}[{n}]", (*label, str(n))) for n, item in enumerate(obj)]
            return {"tuple": items} if isinstance(obj, tuple) else items
        finally:
            self._open.discard(id(obj))

    def _pair(self, key: Any, value: Any, path: str, label: tuple[str, ...]) -> list[Any]:
        if not _is_plain_key(key):
            raise TypeError(
                f"{path} has a key of class {type(key).__name__}; keys must be strings, numbers or tuples of them"
            )
        encoded = self.encode(key, f"{path}, key {key!r}", ())
        return [encoded, self.encode(value, f"{path}[{key!r}]", (*label, str(key)))]

    def _stored(self, kind: str, array: Array, owner: Any, path: str, label: tuple[str, ...]) -> dict[str, Any]:
        double_complex = array.dtype == np.complex128
        if array.dtype.name not in _NAMES and not double_complex:
            raise TypeError(f"{path} is an array of dtype {array.dtype}, which cannot be saved; convert it first")
        interface = array.__array_interface__
        # Empty arrays have no elements to share, and may have any address.
        region = (interface["data"][0], array.shape, array.strides, array.dtype.str) if array.size else id(owner)
        if region not in self._regions:
            self._regions[region] = name = self._fresh_name(label)
            self.arrays[name] = array
        node = {kind: self._regions[region], "object": self._objects.setdefault(id(owner), len(self._objects))}
        return {**node, "complex": True} if double_complex else node

    def _fresh_name(self, label: tuple[str, ...]) -> str:
        # Lone surrogates are no text that other readers could decode.
        wanted = name = ".".join(label).encode(errors="backslashreplace").decode() or "tensor"
        count = 1
        while name in self.arrays or name == "__metadata__":
            count += 1
            name = f"{wanted}~{count}"
        return name


def _is_plain_key(key: Any) -> bool:
    if type(key) is tuple:
        return all(_is_plain_key(part) for part in key)
    return key is None or type(key) in (bool, int, float, str)


class _Decoder:
    """The way back. Objects that were one are one again; those over the same elements share them."""

    def __init__(self, arrays: dict[str, Array]) -> None:
        self._arrays = arrays
        self._objects: dict[int, Any] = {}
        self._first: dict[str, Tensor] = {}

    def decode(self, node: Any) -> Any:
        if isinstance(node, list):
            return [self.decode(item) for item in node]
        if not isinstance(node, dict):
            return node
        if "dict" in node:
            return {self.decode(key): self.decode(value) for key, value in node["dict"]}
        if "tuple" in node:
            return tuple(self.decode(item) for item in node["tuple"])
        if "float" in node:
            return float(node["float"])
        if node["object"] not in self._objects:
            self._objects[node["object"]] = self._made(node)
        return self._objects[node["object"]]

    def _made(self, node: dict[str, Any]) -> Any:
        kind = next(kind for kind in ("tensor", "array", "scalar") if kind in node)
        name = node[kind]
        array = self._arrays[name]
        if node.get("complex"):
            array = array.view(np.complex128).reshape(array.shape[:-1])
        if kind != "tensor":
            return array[()] if kind == "scalar" else array
        first = self._first.setdefault(name, Tensor(array))
        # detach() shares the version counter too.
        return first.detach().requires_grad_(node["grad"])


# -- arrays to the file


def _write(file: BinaryIO, structure: str, arrays: dict[str, Array]) -> None:
    """The safetensors format: the header's length (8 bytes), the header (JSON), the elements."""
    # By falling element size, so that every tensor is aligned.
    ordered = sorted(arrays.items(), key=lambda item: (-item[1].itemsize, item[0]))
    unknown = "0" * hashlib.sha256().digest_size * 2
    header = _header(structure, unknown, ordered)
    file.write(struct.pack("<Q", len(header)) + header)
    digests: dict[str, bytes] = {}
    for name, array in ordered:
        # A copy, because somebody may be training: what is written must be what was hashed.
        elements = _flat(array)
        digests[name] = _digest(name, elements, _file_shape(array), _file_dtype(array))
        file.write(elements.data)
    checksum = _combined(structure, digests)
    file.seek(0)
    header = _header(structure, checksum, ordered)
    file.write(struct.pack("<Q", len(header)) + header)


def _header(structure: str, checksum: str, ordered: list[tuple[str, Array]]) -> bytes:
    entries: dict[str, Any] = {"__metadata__": {_CHECKSUM: checksum, _STRUCTURE: structure}}
    offset = 0
    for name, array in ordered:
        place = [offset, offset + array.nbytes]
        entries[name] = {"dtype": _file_dtype(array), "shape": _file_shape(array), "data_offsets": place}
        offset += array.nbytes
    encoded = json.dumps(entries).encode()
    return encoded + b" " * (-len(encoded) % 8)


def _file_dtype(array: Array) -> str:
    return "F64" if array.dtype == np.complex128 else _NAMES[array.dtype.name]


def _file_shape(array: Array) -> list[int]:
    return [*array.shape, 2] if array.dtype == np.complex128 else list(array.shape)


def _flat(array: Array) -> Array:
    return np.array(array, array.dtype.newbyteorder("<"), order="C").reshape(-1).view(np.uint8)


def _digest(name: str, elements: Array, shape: list[int], dtype: str) -> bytes:
    digest = hashlib.sha256(json.dumps([name, dtype, shape]).encode())
    digest.update(elements.data)
    return digest.digest()


def _combined(structure: str, digests: dict[str, bytes]) -> str:
    combined = hashlib.sha256(structure.encode())
    for name in sorted(digests):
        combined.update(digests[name])
    return combined.hexdigest()


def _checksum(structure: str, arrays: list[tuple[str, Array]]) -> str:
    return _combined(
        structure,
        {name: _digest(name, _flat(array), _file_shape(array), _file_dtype(array)) for name, array in arrays},
    )


def _writable(array: Array) -> Array:
    return array if array.flags.writeable else array.copy()


def _sync_folder(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
