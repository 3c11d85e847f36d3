"""Files that ``torch.load`` reads, also with ``weights_only=True``: an archive of one pickle and the tensors' memory."""

from __future__ import annotations

import pickle
import struct
import sys
import zipfile
from collections import OrderedDict
from typing import Any

import numpy as np

from ....base.errors import ArgumentTypeError
from ...array_memory import address, typed_storage
from ...devices import device
from ...size import Size
from ...tensors import Tensor
from ...types import Array
from ..structure import advice
from .names import STORAGES

_VERSION = b"3\n"  # of the archive's form, ``torch/csrc/jit/serialization``: kProducedFileFormatVersion
_INDEX = struct.Struct("<I")
_UNTYPED = "torch.storage\nUntypedStorage"


def write_torch_file(path: str, obj: Any) -> None:
    """Write an object in the form of ``torch.save``, protocol 2.

    Args:
        path: the file to create.
        obj: a tensor, dtype, device, ``None``, bool, number, string or bytes, or dicts, lists, tuples and sets of such.

    Raises:
        TypeError: an object cannot be saved in this form; the message says where in ``obj`` it is.
        ValueError: a container holds itself.
        OSError: the file exists, or cannot be written.
    """
    pickler = _Pickler()
    described = b"\x80\x02" + pickler.encode(obj, "checkpoint") + b"."
    with zipfile.ZipFile(path, "x") as archive:
        archive.writestr("checkpoint/data.pkl", described)
        archive.writestr("checkpoint/byteorder", sys.byteorder)
        for key, array in enumerate(pickler.arrays):
            with archive.open(f"checkpoint/data/{key}", "w", force_zip64=True) as record:
                record.write(array.reshape(-1).view(np.uint8).data)
        archive.writestr("checkpoint/version", _VERSION)


class _Pickler:
    """Turns an object into opcodes of a pickle, and collects the memory of its tensors."""

    def __init__(self) -> None:
        self.arrays: list[Array] = []
        self._keys: dict[int, int] = {}  # by address of an array: its place among them
        self._places: dict[int, int] = {}  # by id of a tensor: its place in the pickle's memo
        self._open: set[int] = set()
        self._kept: list[Any] = []  # alive until the end, because objects are told apart by id

    def encode(self, obj: Any, path: str) -> bytes:
        """Return the opcodes that make an object; ``path`` is its name in errors."""
        kind = type(obj)
        if obj is None or kind in (bool, int, float):
            return pickle.dumps(obj, 2)[2:-1]  # the opcodes between those of the version and of the end
        if kind in (str, bytes, complex):
            return _text(obj) if kind is str else self._called(obj, path)
        if isinstance(obj, Tensor):
            return self._once(obj, path)
        if kind is Size:
            return _call("torch\nSize", self.encode(tuple(obj), path))
        if isinstance(obj, np.dtype):
            return _name(f"torch\n{obj.name}")
        if kind is device:
            return _call("torch\ndevice", self.encode(str(obj), path))
        if kind in (dict, OrderedDict, list, tuple, set):
            return self._container(obj, path)
        raise ArgumentTypeError(f"{path} is of class {kind.__name__}, which torch.load() would not read; {advice(obj)}")

    def _container(self, obj: Any, path: str) -> bytes:
        if id(obj) in self._open:
            raise ValueError(f"{path} holds itself, which cannot be saved")
        self._open.add(id(obj))
        try:
            return self._items(obj, path)
        finally:
            self._open.discard(id(obj))

    def _items(self, obj: Any, path: str) -> bytes:
        if isinstance(obj, dict):
            pairs = (
                self.encode(key, f"{path}, key {key!r}") + self.encode(obj[key], f"{path}[{key!r}]") for key in obj
            )
            if type(obj) is dict:
                return b"}(" + b"".join(pairs) + b"u"
            attributes = self.encode(vars(obj), path) + b"b" if vars(obj) else b""
            return _name("collections\nOrderedDict") + b")R(" + b"".join(pairs) + b"u" + attributes
        items = b"".join(self.encode(item, f"{path}[{n}]") for n, item in enumerate(obj))
        if isinstance(obj, tuple):
            return b"(" + items + b"t"
        return b"](" + items + b"e" if isinstance(obj, list) else _call("__builtin__\nset", b"](" + items + b"e")

    def _called(self, obj: Any, path: str) -> bytes:
        if isinstance(obj, complex):
            return _call("__builtin__\ncomplex", self.encode(obj.real, path), self.encode(obj.imag, path))
        return _call("_codecs\nencode", _text(obj.decode("latin1")), _text("latin1"))

    def _once(self, tensor: Tensor, path: str) -> bytes:
        """Return opcodes that make a tensor, or those that fetch it from the memo."""
        if id(tensor) in self._places:
            return b"j" + _INDEX.pack(self._places[id(tensor)])
        made = self._sparse(tensor, path) if tensor.is_sparse else self._dense(tensor)
        self._kept.append(tensor)
        self._places[id(tensor)] = place = len(self._places)
        return made + b"r" + _INDEX.pack(place)

    def _sparse(self, tensor: Any, path: str) -> bytes:
        layout = _call("torch.serialization\n_get_layout", self.encode("torch.sparse_coo", path))
        parts = (tensor._indices(), tensor._values(), tuple(tensor.shape), tensor.is_coalesced())
        return _call("torch._utils\n_rebuild_sparse_tensor", layout, self.encode(parts, path))

    def _dense(self, tensor: Tensor) -> bytes:
        array = tensor.numpy(force=True)
        memory, offset, strides = _memory_of(array)
        plain = self.encode((offset, array.shape, strides), "")
        shape = plain[1:-1]  # three arguments, without the marks of their tuple
        end = self.encode(tensor.requires_grad, "") + _name("collections\nOrderedDict") + b")R"
        if (kind := STORAGES.get(array.dtype.name)) is not None:
            return _call(
                "torch._utils\n_rebuild_tensor_v2", self._storage(f"torch\n{kind}", memory, memory.size), shape, end
            )
        dtype = _name(f"torch\n{array.dtype.name}")
        stored = self._storage(_UNTYPED, memory, memory.nbytes)
        return _call("torch._utils\n_rebuild_tensor_v3", stored, shape, end, dtype)

    def _storage(self, kind: str, memory: Array, count: int) -> bytes:
        place = address(memory) if memory.size else -1 - len(self.arrays)
        key = self._keys.setdefault(place, len(self.arrays))
        if key == len(self.arrays):
            self.arrays.append(memory)
        after = self.encode((str(key), "cpu", count), "")[1:-1]
        return b"(" + _text("storage") + _name(kind) + after + b"tQ"


def _text(text: str) -> bytes:
    encoded = text.encode("utf-8", "surrogatepass")
    return b"X" + _INDEX.pack(len(encoded)) + encoded


def _name(name: str) -> bytes:
    return b"c" + name.encode() + b"\n"


def _call(name: str, *arguments: bytes) -> bytes:
    return _name(name) + b"(" + b"".join(arguments) + b"tR"


def _memory_of(array: Array) -> tuple[Array, int, tuple[int, ...]]:
    """Return the contiguous memory of an array, its own or a copy; its first element there, and its strides in elements."""
    root = typed_storage(array)
    if root.flags.c_contiguous and min(array.strides, default=0) >= 0:
        return root, (address(array) - address(root)) // array.itemsize, _steps(array)
    copied = array.copy()
    return copied, 0, _steps(copied)


def _steps(array: Array) -> tuple[int, ...]:
    return tuple(step // array.itemsize for step in array.strides)
