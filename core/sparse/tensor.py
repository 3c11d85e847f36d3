"""``SparseTensor``: a tensor that holds only the elements that are not zero, and their indices (PyTorch's COO layout).

It consists of ``_places``, an array of integers (sparse_dim, n), and ``_elements``, an ordinary tensor (n, *dense
dimensions). Several elements at one place are added up. Autograd, RPC and checkpoints see the tensor of elements, and need
no code for sparse tensors.

Operations on it go through ``__tensor_function__``; those without a sparse form raise an error. The package is imported when
the first sparse tensor is made, because from then on operations check the class of every argument.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any, NoReturn

import numpy as np

from ...base.errors import AutogradError
from ..autograd.sparse_leaves import note_leaf
from ..ops.table.rows import TENSORS
from ..size import Size
from ..tensors import Tensor
from ..types import Array, Counter, DType

# The sparse forms of operations, by the name of the operation; ``operations.py`` fills it.
FORMS: dict[str, Any] = {}


class SparseTensor(Tensor):
    """A tensor of the elements that are not zero; make one with ``sparse_coo_tensor`` or ``Tensor.to_sparse``.

    Args:
        places: indices of the elements, int64 of shape (sparse_dim, n).
        elements: the elements, of shape (n, *dense dimensions).
        shape: the lengths of all dimensions, sparse ones first.
        coalesced: whether each place occurs once, and places are in row-major order.
    """

    is_sparse = True
    layout = "sparse_coo"

    def __init__(self, places: Array, elements: Tensor, shape: Sequence[int], coalesced: bool = False) -> None:
        self._places = places
        self._elements = elements
        self._shape = tuple(shape)
        self._is_coalesced = coalesced

    @classmethod
    def __tensor_function__(
        cls, func: Callable[..., Any], types: tuple[type, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        form = FORMS.get(func.__name__)
        if form is None:
            raise TypeError(f"{func.__name__}() has no form for sparse tensors; call to_dense() first")
        return form(*args, **kwargs)

    # -- what it holds

    def _indices(self) -> Tensor:
        """Return the indices of the elements, (sparse_dim, n), int64."""
        return Tensor(self._places)

    def _values(self) -> Tensor:
        """Return the elements, (n, *dense dimensions)."""
        return self._elements

    def indices(self) -> Tensor:
        """Return the indices of the elements, (sparse_dim, n), int64, each place once.

        Raises:
            AutogradError: the tensor is not coalesced.
        """
        self._check_coalesced("indices")
        return self._indices()

    def values(self) -> Tensor:
        """Return the elements, (n, *dense dimensions), in the order of their places.

        Raises:
            AutogradError: the tensor is not coalesced.
        """
        self._check_coalesced("values")
        return self._elements

    def _check_coalesced(self, method: str) -> None:
        if not self._is_coalesced:
            raise AutogradError(f"{method}() needs a sparse tensor whose places are unique; call coalesce() first")

    def _nnz(self) -> int:
        """Return the number of stored elements."""
        return int(self._places.shape[1])

    def sparse_dim(self) -> int:
        """Return the number of sparse dimensions."""
        return int(self._places.shape[0])

    def dense_dim(self) -> int:
        """Return the number of dense dimensions: those of each stored element."""
        return self._elements.ndim - 1

    def is_coalesced(self) -> bool:
        """Return whether each place occurs once, and places are in row-major order."""
        return self._is_coalesced

    def coalesce(self) -> SparseTensor:
        """Return an equal tensor with each place once, in row-major order; elements of one place are added up."""
        if self._is_coalesced:
            return self
        lengths = self._shape[: self.sparse_dim()]
        unique, which = np.unique(self._rows(), return_inverse=True)
        places = np.zeros((len(lengths), len(unique)), np.int64)
        if places.size:
            places[:] = np.unravel_index(unique, lengths)
        elements = self._added_up(which.reshape(-1), len(unique))
        return SparseTensor(places, elements, self._shape, coalesced=True)

    def to_dense(self, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
        """Return an ordinary tensor of all elements, zeros too; gradients flow through it."""
        rows = math.prod(self._shape[: self.sparse_dim()])
        result = TENSORS.reshape(self._added_up(self._rows(), rows), self._shape)
        return result if dtype is None else result.to(dtype)

    def to_sparse(self, sparse_dim: int | None = None) -> SparseTensor:
        """Return this tensor.

        Raises:
            ValueError: ``sparse_dim`` is not the number of its sparse dimensions.
        """
        if sparse_dim not in (None, self.sparse_dim()):
            raise ValueError(f"this tensor has {self.sparse_dim()} sparse dimensions; call to_dense() to change that")
        return self

    def _rows(self) -> Array:
        """Return the place of each element as one number, counted in row-major order."""
        lengths = self._shape[: self.sparse_dim()]
        steps = np.array([math.prod(lengths[dim + 1 :]) for dim in range(len(lengths))], np.int64)
        return steps @ self._places if len(lengths) else np.zeros(self._nnz(), np.int64)

    def _added_up(self, rows: Array, count: int) -> Tensor:
        shape = (count, *self._elements.shape[1:])
        if not self._elements.numel():
            return Tensor(np.zeros(shape, self.dtype))
        return TENSORS.add_rows(shape, rows, self._elements)

    def with_values(self, elements: Tensor) -> SparseTensor:
        """Return a tensor of other elements at the same places."""
        return SparseTensor(self._places, elements, self._shape, self._is_coalesced)

    # -- questions that other tensors answer from their array

    @property
    def _array(self) -> NoReturn:  # type: ignore[override]
        raise TypeError("this tensor is sparse and has no array of all its elements; call to_dense() first")

    @property
    def shape(self) -> Size:
        return Size(self._shape)

    @property
    def dtype(self) -> DType:
        return self._elements.dtype

    @property
    def ndim(self) -> int:
        return len(self._shape)

    def size(self, dim: int | None = None) -> Any:
        return self._shape if dim is None else self._shape[dim]

    def dim(self) -> int:
        return len(self._shape)

    def numel(self) -> int:
        return math.prod(self._shape)

    def is_floating_point(self) -> bool:
        return self._elements.is_floating_point()

    def __len__(self) -> int:
        if not self._shape:
            raise TypeError("a 0-d tensor has no length")
        return self._shape[0]

    def __repr__(self) -> str:
        parts = [f"indices={self._indices()!r}", f"values={self._elements!r}", f"size={self._shape}"]
        return f"sparse_coo_tensor({', '.join(parts)}, nnz={self._nnz()}{', coalesced' * self._is_coalesced})"

    # -- autograd: everything belongs to the elements

    @property
    def _requires_grad(self) -> bool:  # type: ignore[override]
        return self._elements._requires_grad

    @property
    def _edge(self) -> Any:  # type: ignore[override]
        return self._elements._edge

    @property
    def _counter(self) -> Counter:  # type: ignore[override]
        return self._elements._counter

    @property
    def _accumulator(self) -> NoReturn:  # type: ignore[override]
        raise TypeError("gradients flow to the elements of a sparse tensor; use its _values() for that")

    def requires_grad_(self, requires_grad: bool = True) -> SparseTensor:
        self._elements.requires_grad_(requires_grad)
        if requires_grad and self._elements._edge is None:
            note_leaf(self._elements, self)
        return self

    @property  # type: ignore[misc]
    def grad(self) -> SparseTensor | None:  # type: ignore[override]
        """The gradient of the elements, at their places."""
        gradient = self._elements.grad
        return None if gradient is None else self.with_values(gradient)

    def clone(self, *, memory_format: Any = None) -> SparseTensor:
        return SparseTensor(self._places.copy(), self._elements.clone(), self._shape, self._is_coalesced)

    def detach(self) -> SparseTensor:
        return self.with_values(self._elements.detach())

    def detach_(self) -> SparseTensor:
        self._elements.detach_()
        return self

    def zero_(self) -> SparseTensor:
        """Remove all elements."""
        self._places, self._elements, self._is_coalesced = self._places[:, :0], self._elements.detach()[:0], True
        return self

    # -- copies

    def __copy__(self) -> SparseTensor:
        return self.with_values(self._elements)

    def __deepcopy__(self, memo: dict[int, Any]) -> SparseTensor:
        elements = deepcopy(self._elements, memo)
        return memo.setdefault(id(self), SparseTensor(self._places.copy(), elements, self._shape, self._is_coalesced))

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return SparseTensor, (self._places, self._elements, self._shape, self._is_coalesced)
