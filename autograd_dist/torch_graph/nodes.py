"""Nodes of our engine for PyTorch's graph: a port for each tensor that is sent, and parts, which PyTorch's engine runs."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import torch
from torch.autograd.graph import GradientEdge

from ...base.errors import AutogradError
from ...core import sparse_coo_tensor
from ...core.extend import Array, Edge, Node, Tensor, profiles
from ...core.profiler import record_function
from ..graph import current_gatherer
from .accumulation import is_watched
from .walk import ENDS, TorchEdge, differentiate, hooks_of

ALONE = "this graph goes on in PyTorch's; call autograd_dist.backward(context_id, [loss]) instead of loss.backward()"


class Port(Node):
    """Node of one tensor of PyTorch that was sent, or is a root. Gradients pass through it to the part that made the tensor.

    The planner gives it the part, when a backward begins: then all tensors that were sent before are known.

    Args:
        tensor: the tensor.
        edge: PyTorch's node and output of the tensor.
        order: number of the first message with the tensor, among all that were sent and arrived on this worker.

    Attributes:
        device: device of the tensor; ``None`` for the CPU.
        is_end: the graph of this worker ends at the tensor: it is a leaf, or has arrived.
    """

    __slots__ = ("_table", "_tensor", "device", "edge", "is_end", "order")

    def __init__(self, tensor: Any, edge: TorchEdge, order: int) -> None:
        super().__init__()
        self.device = None if tensor.is_cpu else tensor.device
        self.edge = edge
        self.order = order
        self.is_end = type(edge[0]) in ENDS
        self._tensor = weakref.ref(tensor)
        self._table = None if self.is_end else hooks_of(tensor)

    @property
    def hooked(self) -> bool:
        """True if PyTorch's engine calls hooks, or sets ``.grad``, each time that a gradient of the tensor comes to it."""
        return bool(self._table) or ((tensor := self._tensor()) is not None and tensor.retains_grad)

    def apply(self, grads: tuple[Array | None, ...]) -> Sequence[Array | None]:
        """Return the gradient.

        Raises:
            AutogradError: no distributed backward has planned its part.
        """
        if not self.next_edges:
            raise AutogradError(ALONE)
        return grads


class Part(Node):
    """Part of PyTorch's graph: what leads from tensors that were sent down to leaves, and to what arrived or was sent before.

    Args:
        inputs: edges at which our graph goes on.
        next_edges: for each input, node and slot of our graph.
        leaves: edges of PyTorch's leaves, which get their gradients here.
    """

    __slots__ = ("_ends", "_inputs", "_leaves", "_outputs", "shared")

    def __init__(self, inputs: list[GradientEdge], next_edges: list[Edge], leaves: list[GradientEdge]) -> None:
        super().__init__(tuple(next_edges), 0)
        self._outputs: list[tuple[GradientEdge, Any]] = []
        self._inputs = len(inputs)
        self._leaves = leaves
        self._ends = (*inputs, *leaves)
        self.shared = False  # whether other parts run some of its nodes, too

    def add_output(self, edge: GradientEdge, device: Any) -> int:
        """Add a tensor that was sent, and return its number.

        Args:
            edge: its edge.
            device: its device; ``None`` for the CPU.
        """
        self._outputs.append((edge, device))
        self.num_inputs += 1
        return self.num_inputs - 1

    def apply(self, grads: tuple[Array | None, ...]) -> Sequence[Array | None]:
        """Have PyTorch's engine run the part once, with all gradients that came. Give the leaves theirs; return the others."""
        gatherer, inputs = current_gatherer.get(), self._inputs
        outputs, given = [], []
        for (output, device), grad in zip(self._outputs, grads):
            if grad is not None:
                outputs.append(output)
                given.append(_tensor(grad) if device is None else _tensor(grad).to(device))
        if gatherer is None:
            raise AutogradError(ALONE)
        if not given or not self._ends:
            return [None] * inputs
        keep = self.shared or gatherer.keeps_graph
        if profiles.get():
            with record_function(self.name()):
                results = differentiate(tuple(outputs), tuple(given), self._ends, keep)
        else:
            results = differentiate(tuple(outputs), tuple(given), self._ends, keep)
        if self._leaves:
            give = gatherer.hold if is_watched() else gatherer.accumulate
            for (node, *_), gradient in zip(self._leaves, _owned(results[inputs:])):
                if gradient is not None:
                    give(node.variable, gradient)
        return [None if gradient is None else _array(gradient) for gradient in results[:inputs]]

    def name(self) -> str:
        """Return the name of the part in pictures and errors."""
        return f"PyTorch ({', '.join(dict.fromkeys(type(node).__name__ for (node, *_), _ in self._outputs))})"


def _tensor(gradient: Any) -> torch.Tensor:
    if isinstance(gradient, Tensor):
        sparse: Any = gradient
        indices, values = sparse._indices().numpy(), sparse._values().detach().numpy()
        parts = torch.from_numpy(indices), torch.from_numpy(values)
        return torch.sparse_coo_tensor(*parts, tuple(gradient.shape), check_invariants=True)
    return torch.from_numpy(gradient if gradient.flags.writeable else gradient.copy())


def _array(gradient: torch.Tensor) -> Any:
    """Return a gradient as an array, or a sparse tensor.

    Types that NumPy lacks travel as float32 or complex64, in which they are added up.
    """
    if not gradient.is_cpu:
        gradient = gradient.cpu()
    if gradient.layout is torch.sparse_coo:
        return sparse_coo_tensor(gradient._indices().numpy(), _array(gradient._values()), tuple(gradient.shape))
    if gradient.layout is not torch.strided:
        gradient = gradient.to_dense()
    if gradient.dtype is torch.complex32:
        gradient = gradient.to(torch.complex64)
    elif gradient.dtype.is_floating_point and gradient.element_size() < 4 and gradient.dtype is not torch.float16:
        gradient = gradient.float()
    return gradient.resolve_conj().resolve_neg().numpy()


def _owned(gradients: Sequence[torch.Tensor | None]) -> list[torch.Tensor | None]:
    """Return gradients that share no memory, so that an optimizer may change each."""
    owned, places = list(gradients), set[int]()
    for index, gradient in enumerate(gradients):
        if gradient is None or gradient.layout not in (torch.strided, torch.sparse_coo):
            continue
        values = gradient if gradient.layout is torch.strided else gradient._values()
        place = values.untyped_storage().data_ptr()
        if values is not gradient and place in places:
            owned[index] = gradient.clone()
        elif values is gradient and (place in places or 0 in values.stride()):
            owned[index] = gradient.clone(memory_format=torch.contiguous_format)
        places.add(place)
    return owned
