"""``convert``: an array of one library as one of another. Its gradient goes back to the first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..autograd_dist.extend import ContextGraph, as_tensor, current_context, edge_of
from ..core.extend import Array, Edge, Node, Tensor, attach, bfloat16, is_grad_enabled
from ..rpc.extend import LibraryTensor, library_named

OURS = "telegrad"
# Details of an array without a class of its own (``PackedArray``), by the name of a type unknown to NumPy.
DETAILS: dict[str, Callable[[str], tuple[Any, ...]]] = {
    "torch": lambda name: (None, name),
    "jax": lambda name: (name, ""),
}
# Types unknown to NumPy that libraries have: bits of the integers as which their elements travel.
NARROW = {"bfloat16": 16, "float8_e4m3fn": 8, "float8_e5m2": 8, "float8_e4m3fnuz": 8, "float8_e5m2fnuz": 8}


class Crossing(Node):
    """Node of an array that was converted. Its gradient passes.

    Args:
        edge: where the gradient goes on.
        order: number of the conversion, among all messages of the context on this worker.
        dtype: type of the gradient, if it is not that in which gradients of the new array come.
    """

    __slots__ = ("dtype", "order")

    def __init__(self, edge: Edge, order: int, dtype: Any = None) -> None:
        super().__init__((edge,))
        self.order = order
        self.dtype = dtype

    def apply(self, grads: tuple[Array | None, ...]) -> Sequence[Array | None]:
        """Return the gradient."""
        if self.dtype is None or grads[0] is None or isinstance(grads[0], Tensor):
            return grads
        return (grads[0].astype(self.dtype, copy=False),)


def convert(value: Any, library: str) -> Any:
    """Return an array of another library with the same elements, in memory of its own.

    Inside ``autograd_dist.context()`` the gradient of the new array goes back to ``value``, if that requires grad.

    Args:
        value: a tensor of Telegrad or PyTorch, or an array of JAX, NumPy or another library with an adapter; of any shape, and
            a dtype that NumPy has, bfloat16, or between PyTorch and JAX float8.
        library: "telegrad", "torch" or "jax".

    Returns:
        The array. ``value`` itself if it is one of ``library``.

    Raises:
        TypeError: ``value`` is no array, or one that cannot travel; ``library`` does not have its dtype; JAX is set to 32 bits.
        ValueError: there is no such library.
        MissingLibraryError: the library cannot be imported here. It is an ``ImportError``.

    Example:
        >>> import numpy as np
        >>> import telegrad as tg
        >>> tg.interop.convert(np.ones(2), "telegrad")
        tensor([1., 1.], dtype=float64)
    """
    if library != OURS and library not in DETAILS:
        raise ValueError(f"library must be one of {[OURS, *DETAILS]}; you gave {library!r}")
    tensor = Tensor(value) if isinstance(value, np.ndarray) else as_tensor(value)
    if tensor is None:
        raise TypeError(f"value must be an array; you gave {type(value).__name__}")
    origin = tensor.library.name if isinstance(tensor, LibraryTensor) else OURS
    if origin == library and not isinstance(value, np.ndarray):
        return value
    narrow = _narrow_type(value, tensor, library)
    return _make(library, tensor, narrow, crossing_of(tensor, _gradient_type(tensor, narrow)))


def crossing_of(tensor: Tensor, dtype: Any = None) -> Edge | None:
    """Return node and slot for the gradient of a converted array; ``None`` if nothing is recorded.

    Args:
        tensor: a tensor of ours, or the stand-in for an array of another library.
        dtype: see ``Crossing``.
    """
    context = current_context.get()
    if context is None or not (tensor._requires_grad and is_grad_enabled()):
        return None
    graph: ContextGraph = context.graph
    edge = edge_of(graph, tensor)
    return None if edge is None else (Crossing(edge, next(graph.orders), dtype), 0)


def _make(library: str, tensor: Tensor, narrow: str, edge: Edge | None) -> Any:
    array = tensor._array.copy()  # the memory is another library's, which does not see changes in place
    if library == OURS:
        array = array.view(bfloat16) if narrow else array
        return Tensor(array) if edge is None else attach(array, *edge)
    if narrow:
        array = array.view(f"u{NARROW[narrow] // 8}")
    adapter, details = library_named(library), DETAILS[library](narrow)
    return adapter.unpack(array, details, False) if edge is None else adapter.connect(array, details, edge)


def _narrow_type(value: Any, tensor: Tensor, library: str) -> str:
    """Return the name of a type that NumPy does not have; empty if it has the array's.

    Raises:
        TypeError: not both libraries have the type.
    """
    name = str(value.dtype).rpartition(".")[2]
    if name == tensor._array.dtype.name and name not in NARROW:
        return ""
    if name not in NARROW or (library == OURS and name != "bfloat16"):
        raise TypeError(f"an array of {name} cannot be converted: {library} has no such type; cast it to float32 first")
    if library == OURS and bfloat16 is None:
        raise TypeError("an array of bfloat16 cannot be converted without the package ml_dtypes; install it")
    return name


def _gradient_type(tensor: Tensor, narrow: str) -> Any:
    """Return the type in which gradients of a narrow type go on: ours have the tensor's, others are float32."""
    if not narrow:
        return None
    return np.dtype(np.float32) if isinstance(tensor, LibraryTensor) else tensor._array.dtype
