"""The names that a PyTorch checkpoint may hold: dtypes, storages, and functions that rebuild tensors, with their meaning here.

PyTorch lists those of its own in ``torch/_weights_only_unpickler.py``; the functions are in ``torch/_utils.py``.
"""

from __future__ import annotations

import math
from collections import Counter, OrderedDict
from typing import Any, NamedTuple

from ...devices import device
from ...dtypes import dtype_by_name
from ...ops.create.sparse import sparse_coo_tensor
from ...ops.shape.strided import as_strided
from ...size import Size
from ...tensors import Tensor
from ...types import Array, DType
from ..limits import Limits
from .opcodes import Builder


class Storage(NamedTuple):
    """Class of storages, as a pickle names it: the name of its elements' dtype, ``None`` for plain bytes."""

    dtype: str | None


class Stored:
    """Memory that several tensors of a file may share: an array of one dimension, and the limits of its file."""

    def __init__(self, array: Array, limits: Limits) -> None:
        self.array, self.limits = array, limits
        self._base: dict[DType, Tensor] = {}

    def as_dtype(self, dtype: DType) -> Tensor:
        """Return the memory as a tensor of elements of a dtype."""
        if dtype not in self._base:
            self._base[dtype] = Tensor(self.array.view(dtype))
        return self._base[dtype]


def _tensor(
    stored: Stored, offset: int, size: Any, stride: Any, grad: bool = False, hooks: Any = None, flags: Any = None
) -> Tensor:
    return _tensor_of_dtype(stored, offset, size, stride, grad, hooks, stored.array.dtype, flags)


def _tensor_of_dtype(
    stored: Stored, offset: int, size: Any, stride: Any, grad: bool, _hooks: Any, dtype: DType, flags: Any = None
) -> Tensor:
    made = as_strided(stored.as_dtype(dtype), size, stride, offset).detach()
    for name in flags or ():
        stored.limits.allocate(
            math.prod(made.shape) * dtype.itemsize
        )  # more than its memory, if it has elements many times
        made = {"conj": made.conj, "neg": made.neg}[name]()
    return made.requires_grad_(grad)


def _parameter(data: Tensor, requires_grad: bool, *_: Any) -> Tensor:
    return data.detach().requires_grad_(requires_grad)


def _sparse(layout: str, data: tuple[Any, ...]) -> Tensor:
    if layout != "torch.sparse_coo":
        raise ValueError(f"it holds a tensor of layout {layout}; save it as to_dense() or to_sparse_coo()")
    indices, values, size, *coalesced = data
    return sparse_coo_tensor(indices, values, size, is_coalesced=bool(coalesced and coalesced[0]))


def _members(items: Any = ()) -> Any:
    return items


def _of_class(function: Builder, _kind: Any, arguments: Any, _attributes: Any) -> tuple[Any, Any]:
    return function, arguments


def _bytes(text: str, encoding: str) -> bytes:
    if encoding not in ("latin1", "latin-1"):
        raise ValueError(f"it holds bytes in the encoding {encoding}, where pickles have latin1")
    return text.encode("latin1")


def _bytearray(content: str | bytes = b"", encoding: str = "latin1") -> bytearray:
    return bytearray(_bytes(content, encoding) if isinstance(content, str) else bytes(memoryview(content)))


_DTYPES = (
    *(
        "bool",
        "uint8",
        "int8",
        "uint16",
        "int16",
        "uint32",
        "int32",
        "uint64",
        "int64",
        "float16",
        "bfloat16",
        "float32",
    ),
    *("float64", "complex64", "complex128", "float8_e4m3fn", "float8_e5m2"),
)
# By name of a dtype: its class of storages. Later dtypes have none, and are stored as plain bytes.
STORAGES = {
    "bool": "BoolStorage",
    "uint8": "ByteStorage",
    "int8": "CharStorage",
    "int16": "ShortStorage",
    "int32": "IntStorage",
    "int64": "LongStorage",
    "float16": "HalfStorage",
    "bfloat16": "BFloat16Storage",
    "float32": "FloatStorage",
    "float64": "DoubleStorage",
    "complex64": "ComplexFloatStorage",
    "complex128": "ComplexDoubleStorage",
}


class _Names(dict[str, Any]):
    """Names with their values; a dtype's is looked up when it is met, because its package may be missing."""

    def __getitem__(self, name: str) -> Any:
        value = super().__getitem__(name)
        return dtype_by_name(value) if type(value) is str else value


NAMES = _Names(
    {
        **{f"torch.{name}": name for name in _DTYPES},
        **{f"torch.{name}": Storage(dtype) for dtype, name in STORAGES.items()},
        **{f"torch.cuda.{name}": Storage(dtype) for dtype, name in STORAGES.items()},
        "torch.storage.UntypedStorage": Storage(None),
        "torch._utils._rebuild_tensor": Builder(_tensor),
        "torch._utils._rebuild_tensor_v2": Builder(_tensor),
        "torch._utils._rebuild_tensor_v3": Builder(_tensor_of_dtype),
        "torch._utils._rebuild_parameter": Builder(_parameter),
        "torch._utils._rebuild_parameter_with_state": Builder(_parameter),
        "torch._utils._rebuild_sparse_tensor": Builder(_sparse, copied=lambda _layout, data: data[:2]),
        "torch._tensor._rebuild_from_type_v2": Builder(_of_class, inner=_of_class),
        "torch.serialization._get_layout": Builder(str),
        "torch.Tensor": Tensor,
        "torch.nn.parameter.Parameter": Tensor,
        "torch.Size": Builder(Size),
        "torch.device": Builder(device),
        "collections.OrderedDict": Builder(OrderedDict, lambda pairs=(): [key for key, _ in pairs]),
        "collections.Counter": Builder(Counter, _members),
        "builtins.set": Builder(set, _members),
        "builtins.frozenset": Builder(frozenset, _members),
        "builtins.complex": Builder(complex),
        "builtins.bytearray": Builder(_bytearray),
        "_codecs.encode": Builder(_bytes),
    }
)
