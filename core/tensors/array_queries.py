"""Properties of a tensor's array: sizes, strides, elements, and conversions to Python values."""

from __future__ import annotations

from typing import Any

from ...base.errors import ArgumentValueError
from ..array_memory import address, storage
from ..devices import CPU
from ..devices import device as Device
from ..dtypes import is_floating
from ..size import Size
from ..types import DType
from .state import TensorState


class ArrayQueries(TensorState):
    """The part of ``Tensor`` that is about its array and not about autograd."""

    __slots__ = ()

    # Of all tensors but ``SparseTensor``.
    is_sparse: bool = False
    layout: str = "strided"

    @property
    def shape(self) -> Size:
        """The length of each dimension."""
        return Size(self._array.shape)

    @property
    def dtype(self) -> DType:
        """The element type: a NumPy dtype."""
        return self._array.dtype

    @property
    def device(self) -> Device:
        """The device: always ``device("cpu")``."""
        return CPU

    @property
    def is_cpu(self) -> bool:
        """True: every tensor is on the CPU."""
        return True

    @property
    def is_cuda(self) -> bool:
        """False: no tensor is on a GPU."""
        return False

    @property
    def names(self) -> tuple[None, ...]:
        """The names of the dimensions: ``None`` for each."""
        return (None,) * self._array.ndim

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
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
        """Return the only element as a Python number.

        Raises:
            ArgumentValueError: the tensor does not have exactly one element.
        """
        if self._array.size != 1:
            raise ArgumentValueError(
                f"item() needs a tensor of one element, and this one has shape {self._array.shape}"
            )
        return self._array.item()

    def tolist(self) -> Any:
        """Return the elements as nested lists of Python numbers."""
        return self._array.tolist()

    def size(self, dim: int | None = None) -> Any:
        """Return the shape, or the length of dimension ``dim``.

        Raises:
            IndexError: there is no such dimension.
        """
        return Size(self._array.shape) if dim is None else self._at(self._array.shape, dim)

    def dim(self) -> int:
        """Return the number of dimensions."""
        return self._array.ndim

    def numel(self) -> int:
        """Return the number of elements."""
        return self._array.size

    nelement = numel

    def element_size(self) -> int:
        """Return the number of bytes of one element."""
        return self._array.itemsize

    def stride(self, dim: int | None = None) -> Any:
        """Return the steps between neighbours along each dimension (or along ``dim``), in elements.

        Raises:
            IndexError: there is no such dimension.
        """
        steps = tuple(step // self._array.itemsize for step in self._array.strides)
        return steps if dim is None else self._at(steps, dim)

    def _at(self, values: tuple[int, ...], dim: int) -> int:
        try:
            return values[dim]
        except IndexError:
            raise IndexError(f"dim {dim} is out of range: this tensor has {len(values)} dimensions") from None

    def storage_offset(self) -> int:
        """Return the number of elements between the start of the base's memory and the first element."""
        return (address(self._array) - address(storage(self._array))) // self._array.itemsize

    def is_contiguous(self) -> bool:
        """Return whether the elements lie in memory in row-major order, without gaps."""
        return self._array.flags.c_contiguous

    def data_ptr(self) -> int:
        """Return the address of the first element."""
        return address(self._array)

    def is_floating_point(self) -> bool:
        """Return whether the elements are real floating-point numbers."""
        return is_floating(self._array.dtype)

    def is_complex(self) -> bool:
        """Return whether the elements are complex numbers."""
        return self._array.dtype.kind == "c"

    def is_signed(self) -> bool:
        """Return whether the dtype has negative numbers."""
        return self._array.dtype.kind not in "bu"

    def ndimension(self) -> int:
        """Return the number of dimensions: the same as ``dim``."""
        return self._array.ndim

    def get_device(self) -> int:
        """Return the number of the GPU that holds it: -1, for the CPU."""
        return -1

    def __len__(self) -> int:
        if not self._array.ndim:
            raise TypeError("a 0-d tensor has no length")
        return int(self._array.shape[0])

    def __bool__(self) -> bool:
        if self._array.size != 1:
            raise ArgumentValueError("the truth of a tensor of several elements is ambiguous; use any() or all()")
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
