"""``TensorState``: the fields of a tensor. The parts of ``Tensor`` (copies, shared memory, queries) are built on it."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, TypeVar

from ..types import Array, Counter

if TYPE_CHECKING:
    from ..autograd.hooks import NodeHooks
    from ..autograd.node import Edge

T = TypeVar("T", bound="TensorState")


class TensorState:
    """The fields of a tensor.

    Attributes:
        _array: the elements.
        _requires_grad: whether operations on the tensor are recorded.
        _edge: the node that produced this tensor, and the number of that output; ``None`` for a leaf.
        _counter: version counter, shared by all tensors over the same memory.
        _view: for a view made while recording: (parent, row, arguments, arguments of its rule), to record it again.
        _views: weak references to the views of this tensor that were made while recording.
        _grad: the gradient of a leaf, or of a tensor that retains its gradient: a tensor, a ``BorrowedGradient`` or ``None``.
        _accumulator: weak reference to the leaf's ``AccumulateGrad``.
        _hooks: hooks of a leaf; those of other tensors are on their node.
    """

    __slots__ = (
        "__dict__",
        "__weakref__",
        "_accumulator",
        "_array",
        "_counter",
        "_edge",
        "_grad",
        "_hooks",
        "_requires_grad",
        "_view",
        "_views",
    )

    _array: Array
    _requires_grad: bool
    _edge: Edge | None
    _counter: Counter
    _view: tuple[Any, ...] | None
    _views: list[weakref.ref[Any]] | None
    _grad: Any
    _accumulator: weakref.ref[Any] | None
    _hooks: NodeHooks | None

    @classmethod
    def _leaf(cls: type[T], array: Array, requires_grad: bool) -> T:
        """Return a leaf of this class over ``array``, made without the class's own ``__init__``."""
        raise NotImplementedError
