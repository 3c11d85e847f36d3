"""What a tensor answers about its array: sizes, strides, elements, conversions to Python values."""

from __future__ import annotations

from typing import Any

from .devices import CPU
from .devices import device as Device
from .dtypes import is_floating
from .sharing import address, storage
from .types import Array, DType


class ArrayQueries:
    """The part of ``Tensor`` that has nothing to do with autograd."""

    __slots__ = ()

    _array: Array

    # Of all tensors but ``SparseTensor``.
    is_sparse: bool = False
    layout: str = "strided"

    @property
    def shape(self) -> tuple[int, ...]:
        """The length of each dimension."""
        return self._array.shape

    @property
    def dtype(self) -> DType:
        """The element type: a NumPy dtype."""
        return self._array.dtype

    @property
    def device(self) -> Device:
        """Where it lives: always ``device("cpu")``."""
        return CPU

    @property
    def is_cpu(self) -> bool:
        """Whether it lives on the CPU: always."""
        return True

    @property
    def is_cuda(self) -> bool:
        """Whether it lives on a GPU: never."""
        return False

    @property
    def names(self) -> tuple[None, ...]:
        """The names of the dimensions, which have none."""
        return (None,) * self._array.ndim

    @property
    def ndim(self) -> int:
        """How many dimensions it has."""
        return self._array.ndim

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self._array.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self._array.nbytes

    def item(self) -> Any:
        """The only element, as a Python number.

        Raises:
            ValueError: there is not exactly one.
        """
        if self._array.size != 1:
            raise ValueError(f"item() needs a tensor of one element, and this one has shape {self._array.shape}")
        return self._array.item()

    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers."""
        return self._array.tolist()

    def size(self, dim: int | None = None) -> Any:
        """The shape, or the length of one dimension."""
        return self._array.shape if dim is None else self._at(self._array.shape, dim)

    def dim(self) -> int:
        """How many dimensions it has."""
        return self._array.ndim

    def numel(self) -> int:
        """How many elements it has."""
        return self._array.size

    nelement = numel

    def element_size(self) -> int:
        """Bytes of one element."""
        return self._array.itemsize

    def stride(self, dim: int | None = None) -> Any:
        """Steps between neighbours of each dimension, in elements."""
        steps = tuple(step // self._array.itemsize for step in self._array.strides)
        return steps if dim is None else self._at(steps, dim)

    def _at(self, of_each: tuple[int, ...], dim: int) -> int:
        try:
            return of_each[dim]
        except IndexError:
            raise IndexError(f"dim {dim} is out of range: this tensor has {len(of_each)} dimensions") from None

    def storage_offset(self) -> int:
        """How many elements lie between the start of the memory that this is a view of and the first element."""
        return (address(self._array) - address(storage(self._array))) // self._array.itemsize

    def is_contiguous(self) -> bool:
        """Whether the elements lie in memory in row-major order, without gaps."""
        return self._array.flags.c_contiguous

    def data_ptr(self) -> int:
        """The address of the first element."""
        return address(self._array)

    def is_floating_point(self) -> bool:
        """Whether the elements are real floating-point numbers."""
        return is_floating(self._array.dtype)

    def is_complex(self) -> bool:
        """Whether the elements are complex numbers."""
        return self._array.dtype.kind == "c"

    def is_signed(self) -> bool:
        """Whether the type has negative numbers."""
        return self._array.dtype.kind not in "bu"

    def ndimension(self) -> int:
        """How many dimensions it has: ``dim``."""
        return self._array.ndim

    def get_device(self) -> int:
        """The number of the GPU that it lives on: -1, for the CPU."""
        return -1

    def __len__(self) -> int:
        if not self._array.ndim:
            raise TypeError("a 0-d tensor has no length")
        return int(self._array.shape[0])

    def __bool__(self) -> bool:
        if self._array.size != 1:
            raise ValueError("the truth of a tensor of several elements is ambiguous; use any() or all()")
        return bool(self._array)

    def __float__(self) -> float:
        return float(self.item())

    def __complex__(self) -> complex:
        return complex(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __index__(self) -> int:
        if self._array.dtype.kind not in "iu":
            raise TypeError(f"only an integer tensor can be an index, and this one is {self._array.dtype}")
        return int(self.item())

    def __contains__(self, value: Any) -> bool:
        return bool((self._array == getattr(value, "_array", value)).any())
