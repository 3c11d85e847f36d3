"""``saved_tensors_hooks``: what operations save for the backward pass, kept in another form until then.

A mode: it looks at the node that an operation made, takes the saved tensors out, and puts them back just before the node runs.
So nobody pays for it who does not use it. Operations that are one node with passes of their own (layers of recurrent networks,
attention) keep what they have; so do custom functions.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from ..errors import AutogradError
from ..interception import TensorFunctionMode
from ..tensor import Tensor
from .edges import gradient_edge
from .node import Node

Pack = Callable[[Tensor], Any]
Unpack = Callable[[Any], Tensor]


class saved_tensors_hooks(TensorFunctionMode):  # noqa: N801 - PyTorch's name
    """While it is entered, ``pack(tensor)`` is kept in place of each saved tensor, and ``unpack`` of that is what the
    backward pass uses.

    ``unpack`` must give a tensor of the same shape and dtype (``torch.autograd.graph.saved_tensors_hooks``).
    """

    def __init__(self, pack_hook: Pack, unpack_hook: Unpack) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __tensor_function__(
        self, func: Callable[..., Any], types: tuple[type, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Run the operation, and pack what its node saved."""
        result = func(*args, **kwargs)
        for node in new_nodes(result):
            saved = getattr(node, "saved", None)
            if getattr(node, "row", None) is not None and saved and not node.metadata.get(_PACKED):
                node.metadata[_PACKED] = True
                _Packed(node, saved, self.pack_hook, self.unpack_hook)
        return result


_PACKED = object()


class _Packed:
    """The packed entries of one node, which holds it by two hooks; it knows the node weakly."""

    def __init__(self, node: Any, saved: tuple[Any, ...], pack: Pack, unpack: Unpack) -> None:
        self.node = weakref.ref(node)
        self.unpack = unpack
        self.entries: list[Any] | None = [_packed(entry, pack) for entry in saved]
        node.saved = tuple(None for _ in saved)
        node._hook_tables().before.add(self.restore)
        node._hook_tables().after.add(self.drop)

    def restore(self, _: Any) -> None:
        """Before the node runs."""
        node = self.node()
        if node is not None and self.entries is not None:
            node.saved = tuple(self._entry(packed) for packed in self.entries)

    def drop(self, *_: Any) -> None:
        """After it ran: what was unpacked goes, and all of it if the graph is not kept."""
        node = self.node()
        if node is not None and node.saved is None:
            self.entries = None
        elif node is not None:
            node.saved = tuple(None for _ in node.saved)

    def _entry(self, packed: Any) -> Any:
        if not isinstance(packed, tuple):
            return packed
        kept, edge, shape, result = packed
        tensor = self.unpack(kept)
        if not isinstance(tensor, Tensor) or tensor.shape != shape:
            what = f"a tensor of shape {tensor.shape}" if isinstance(tensor, Tensor) else type(tensor).__name__
            raise AutogradError(f"unpack_hook must give a tensor of shape {shape}, as was packed, and it gave {what}")
        place = None if result else Tensor(tensor._array, edge is not None, edge)
        return (tensor._array, place, tensor._counter, tensor._counter[0])


def _packed(entry: Any, pack: Pack) -> Any:
    if entry is None or entry[1] is entry[0]:
        return entry if entry is None else list(entry)  # a plain number
    array, tensor, *_ = entry
    edge = None if tensor is None else gradient_edge(tensor)
    given = tensor if tensor is not None and tensor._array is array else Tensor(array)
    return (pack(given.detach()), edge, array.shape, tensor is None)


def new_nodes(result: Any) -> list[Node]:
    """The nodes of the tensors that an operation returned."""
    results = result if isinstance(result, (tuple, list)) else (result,)
    return [item._edge[0] for item in results if isinstance(item, Tensor) and item._edge is not None]
