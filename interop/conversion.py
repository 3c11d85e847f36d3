"""``convert``: an array of one library as one of another. Its gradient goes back to the first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..autograd_dist.extend import ContextGraph, as_tensor, current_context, edge_of
from ..core.extend import Array, Edge, Node, Tensor, attach, is_grad_enabled
from ..rpc.extend import LibraryTensor, library_named

OURS = "telegrad"
# Details of an array without a class of its own, and whose type NumPy has (``PackedArray``).
PLAIN: dict[str, tuple[Any, ...]] = {"torch": (None, ""), "jax": ("", "")}


class Crossing(Node):
    """Node of an array that was converted. Its gradient passes.

    Args:
        edge: where the gradient goes on.
        order: number of the conversion, among all messages of the context on this worker.
    """

    __slots__ = ("order",)

    def __init__(self, edge: Edge, order: int) -> None:
        super().__init__((edge,))
        self.order = order

    def apply(self, grads: tuple[Array | None, ...]) -> Sequence[Array | None]:
        """Return the gradient."""
        return grads


def convert(value: Any, library: str) -> Any:
    """Return an array of another library with the same elements, in memory of its own.

    Inside ``autograd_dist.context()`` the gradient of the new array goes back to ``value``, if that requires grad.

    Args:
        value: a tensor of Telegrad or PyTorch, or an array of JAX, NumPy or another library with an adapter; of any shape, and
            a dtype that NumPy has.
        library: "telegrad", "torch" or "jax".

    Returns:
        The array. ``value`` itself if it is one of ``library``.

    Raises:
        TypeError: ``value`` is no array, or one that cannot travel; its dtype is unknown to NumPy; JAX is set to 32 bits.
        ValueError: there is no such library.
        MissingLibraryError: the library cannot be imported here. It is an ``ImportError``.

    Example:
        >>> import numpy as np
        >>> import telegrad as tg
        >>> tg.interop.convert(np.ones(2), "telegrad")
        tensor([1., 1.], dtype=float64)
    """
    if library != OURS and library not in PLAIN:
        raise ValueError(f"library must be one of {[OURS, *PLAIN]}; you gave {library!r}")
    tensor = Tensor(value) if isinstance(value, np.ndarray) else as_tensor(value)
    if tensor is None:
        raise TypeError(f"value must be an array; you gave {type(value).__name__}")
    origin = tensor.library.name if isinstance(tensor, LibraryTensor) else OURS
    if origin == library and not isinstance(value, np.ndarray):
        return value
    _check_dtype(value, tensor)
    return _make(library, tensor, crossing_of(tensor))


def crossing_of(tensor: Tensor) -> Edge | None:
    """Return node and slot for the gradient of a converted array; ``None`` if nothing is recorded.

    Args:
        tensor: a tensor of ours, or the stand-in for an array of another library.
    """
    context = current_context.get()
    if context is None or not (tensor._requires_grad and is_grad_enabled()):
        return None
    graph: ContextGraph = context.graph
    edge = edge_of(graph, tensor)
    return None if edge is None else (Crossing(edge, graph.next_order()), 0)


def _make(library: str, tensor: Tensor, edge: Edge | None) -> Any:
    array = tensor._array.copy()  # the memory is another library's, which does not see changes in place
    if library == OURS:
        return Tensor(array) if edge is None else attach(array, *edge)
    adapter = library_named(library)
    if edge is None:
        return adapter.unpack(array, PLAIN[library], False)
    return adapter.connect(array, PLAIN[library], edge)


def _check_dtype(value: Any, tensor: Tensor) -> None:
    name = str(value.dtype).rpartition(".")[2]
    if name != tensor._array.dtype.name:
        raise TypeError(
            f"an array of {name} cannot be converted, because NumPy has no such type; cast it to float32 first"
        )
