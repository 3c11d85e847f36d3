"""Nested objects as JSON values and arrays by name, and back: the parts of a checkpoint.

Lists, and the numbers and strings of JSON, stand for themselves. Any other value is an object with its kind as the first key:
``{"tuple": [...]}``, ``{"dict": [[key, value], ...]}``, ``{"tensor": name of its array, ...}``.
"""

from __future__ import annotations

import base64
import math
from collections import OrderedDict
from typing import Any

import numpy as np

from ...base.errors import ArgumentTypeError
from ..dtypes import dtype_by_name
from ..ops.create.sparse import sparse_coo_tensor
from ..size import Size
from ..tensors import Tensor
from ..types import Array, DType
from .limits import Limits
from .safetensors_file import fits

_DICTS: dict[type, str] = {dict: "dict", OrderedDict: "ordered"}

# Dtypes that the format or its library lacks, and the dtype that their bytes are stored in.
_STORED_AS = {"complex128": "float64", "float8_e4m3fn": "uint8", "float8_e5m2": "uint8"}


class Encoder:
    """Turns an object into JSON values, and collects its arrays by name."""

    def __init__(self) -> None:
        self.arrays: dict[str, Array] = {}
        self._regions: dict[Any, str] = {}
        self._objects: dict[int, int] = {}
        self._open: set[int] = set()
        self._kept: list[Any] = []  # made here; alive until the end, because arrays are told apart by address

    def encode(self, obj: Any, path: str, label: tuple[str, ...]) -> Any:
        """Return the JSON value of an object, and collect its arrays.

        Args:
            obj: the object.
            path: its name in errors.
            label: the parts of its array's name.

        Raises:
            TypeError: it is of a class that cannot be saved.
            ValueError: it holds itself.
        """
        kind = type(obj)
        if obj is None or kind in (bool, int, str):
            return obj
        if kind is float:
            return obj if math.isfinite(obj) else {"float": repr(obj)}
        if kind is complex:
            return {"complex": [repr(obj.real), repr(obj.imag)]}
        if kind is bytes:
            return {"bytes": base64.b64encode(obj).decode()}
        if isinstance(obj, Tensor) and obj.is_sparse:
            return self._sparse(obj, path, label)
        if isinstance(obj, Tensor):
            return {**self._stored("tensor", obj.numpy(force=True), obj, path, label), "grad": obj.requires_grad}
        if isinstance(obj, np.ndarray):
            return self._stored("array", obj, obj, path, label)
        if isinstance(obj, np.generic):
            return self._stored("scalar", np.asarray(obj), obj, path, label)
        if kind in (list, tuple, Size) or kind in _DICTS:
            return self._container(obj, path, label)
        raise ArgumentTypeError(f"{path} is of class {kind.__name__}, which cannot be saved; {advice(obj)}")

    def _container(self, obj: Any, path: str, label: tuple[str, ...]) -> Any:
        if id(obj) in self._open:
            raise ValueError(f"{path} holds itself, which cannot be saved")
        self._open.add(id(obj))
        try:
            if isinstance(obj, dict):
                return {_DICTS[type(obj)]: [self._pair(key, value, path, label) for key, value in obj.items()]}
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
        stored_as = _STORED_AS.get(array.dtype.name)
        if stored_as is None and not fits(array.dtype):
            raise TypeError(f"{path} is an array of dtype {array.dtype}, which cannot be saved; convert it first")
        interface = array.__array_interface__
        # Empty arrays have no elements to share, and may have any address.
        region = (interface["data"][0], array.shape, array.strides, array.dtype) if array.size else id(owner)
        if region not in self._regions:
            self._regions[region] = name = self._fresh_name(label)
            self.arrays[name] = array if stored_as is None else _bytes_as(stored_as, array)
            self._kept.append(array)
        node = {kind: self._regions[region], "object": self._objects.setdefault(id(owner), len(self._objects))}
        return node if stored_as is None else {**node, "dtype": array.dtype.name}

    def _sparse(self, tensor: Any, path: str, label: tuple[str, ...]) -> dict[str, Any]:
        parts = {"indices": tensor._indices(), "values": tensor._values()}
        encoded = [self.encode(part, f"{path}.{name}", (*label, name)) for name, part in parts.items()]
        self._kept += parts.values()
        return {
            "sparse": encoded,
            "size": list(tensor.shape),
            "coalesced": tensor.is_coalesced(),
            "object": self._objects.setdefault(id(tensor), len(self._objects)),
        }

    def _fresh_name(self, label: tuple[str, ...]) -> str:
        # Lone surrogates cannot be encoded as UTF-8.
        wanted = name = ".".join(label).encode(errors="backslashreplace").decode() or "tensor"
        count = 1
        while name in self.arrays or name == "__metadata__":
            count += 1
            name = f"{wanted}~{count}"
        return name


def _bytes_as(name: str, array: Array) -> Array:
    """Return the bytes of an array as another dtype, with a last dimension for the parts of each element."""
    dtype = np.dtype(name)
    flat = np.ascontiguousarray(array, array.dtype.newbyteorder("=")).reshape(-1).view(dtype)
    return flat.reshape(*array.shape, array.itemsize // dtype.itemsize)


def _stored_dtype(name: str) -> DType:
    if name not in _STORED_AS:
        raise ValueError(f"unknown dtype {name!r}")
    return dtype_by_name(name)


def advice(obj: Any) -> str:
    """Return what to do instead of saving an object of another class."""
    if isinstance(obj, tuple):
        return "of a named tuple, save its _asdict(), or a plain tuple of it"
    return (
        "a checkpoint holds tensors, arrays, None, bools, numbers, strings and bytes, in dicts, lists and tuples "
        "(of a module or optimizer, save state_dict())"
    )


def _is_plain_key(key: Any) -> bool:
    if type(key) is tuple:
        return all(_is_plain_key(part) for part in key)
    return key is None or type(key) in (bool, int, float, str)


class Decoder:
    """Turns JSON values into objects. Objects that were one are one again; those over the same elements share them."""

    def __init__(self, arrays: dict[str, Array], limits: Limits) -> None:
        self._arrays, self._limits = arrays, limits
        self._objects: dict[int, Any] = {}
        self._first: dict[str, Tensor] = {}

    def decode(self, node: Any) -> Any:
        """Return the object that a JSON value stands for."""
        if isinstance(node, list):
            return [self.decode(item) for item in node]
        if not isinstance(node, dict):
            return node
        kind, value = next(iter(node.items()))
        if kind in ("dict", "ordered"):
            pairs = ((self._key(key), self.decode(item)) for key, item in value)
            return dict(pairs) if kind == "dict" else OrderedDict(pairs)
        if kind == "tuple":
            return tuple(self.decode(item) for item in value)
        if kind == "float":
            return float(value)
        if kind == "complex":
            return complex(*map(float, value))
        if kind == "bytes":
            return base64.b64decode(value, validate=True)
        if node["object"] not in self._objects:
            self._objects[node["object"]] = self._made(kind, value, node)
        return self._objects[node["object"]]

    def _key(self, node: Any) -> Any:
        key = self.decode(node)
        self._limits.hash(key)
        return key

    def _made(self, kind: str, name: Any, node: dict[str, Any]) -> Any:
        if kind == "sparse":
            indices, values = map(self.decode, name)
            self._limits.allocate(indices.nbytes + values.nbytes)  # they are read once more
            return sparse_coo_tensor(indices, values, node["size"], is_coalesced=node["coalesced"])
        array = self._arrays[name]
        if "dtype" in node:
            array = array.view(_stored_dtype(node["dtype"])).reshape(array.shape[:-1])
        if kind == "tensor":
            # detach() shares the version counter too.
            return self._first.setdefault(name, Tensor(array)).detach().requires_grad_(node["grad"])
        if kind not in ("array", "scalar"):
            raise ValueError(f"unknown kind {kind!r}")
        return array[()] if kind == "scalar" else array
