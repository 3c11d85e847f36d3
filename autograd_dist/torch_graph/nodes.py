"""Nodes of our engine for PyTorch's graph: a port for each tensor that is sent, and parts, which PyTorch's engine runs."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any, Protocol

import torch

from ...core import sparse_coo_tensor
from ...core.extend import Array, Edge, Node, Tensor, profiles
from ...core.profiler import record_function
from ..graph import current_gatherer
from .accumulation import is_watched
from .walk import TorchEdge, differentiate, gradient_edges, hooks_of, is_end


class GivesParts(Protocol):
    """The planner, as its ports see it."""

    def plan(self) -> None:
        """Give each port a part."""
        ...


class Port(Node):
    """Node of one tensor of PyTorch that was sent, or is a root. Gradients pass through it to the part that made the tensor.

    The part is planned when the first backward reaches the port: then all tensors that were sent before are known.

    Args:
        tensor: the tensor.
        edge: PyTorch's node and output of the tensor.
        order: number of the first message with the tensor, among all that were sent and arrived on this worker.
        planner: gives the port its part. It has this port, so it is referred to weakly.

    Attributes:
        device: device of the tensor; ``None`` for the CPU.
    """

    __slots__ = ("_next", "_planner", "_table", "_tensor", "device", "edge", "order")

    def __init__(self, tensor: Any, edge: TorchEdge, order: int, planner: weakref.ref[GivesParts]) -> None:
        self._next: tuple[Edge, ...] | None = None
        self._planner = planner
        self._hooks = None
        self._metadata = None
        self.num_inputs = 1
        self.device = None if tensor.is_cpu else tensor.device
        self.edge = edge
        self.order = order
        self._tensor = weakref.ref(tensor)
        self._table = None if is_end(edge) else hooks_of(tensor)

    @property
    def hooked(self) -> bool:
        """True if PyTorch's engine calls hooks, or sets ``.grad``, each time that a gradient of the tensor comes to it."""
        return bool(self._table) or ((tensor := self._tensor()) is not None and tensor.retains_grad)

    @property
    def next_edges(self) -> tuple[Edge, ...]:  # type: ignore[override]
        """The edge to the part that made the tensor."""
        if self._next is None and (planner := self._planner()) is not None:
            planner.plan()
        return self._next or ()

    def join(self, part: Part, slot: int) -> None:
        """Let gradients go to output ``slot`` of a part."""
        self._next = ((part, slot),)

    def apply(self, grads: tuple[Array | None, ...]) -> Sequence[Array | None]:
        """Return the gradient."""
        return grads


class Part(Node):
    """Part of PyTorch's graph: what leads from tensors that were sent down to leaves, and to what arrived or was sent before.

    Args:
        ports: those of the tensors that were sent.
        inputs: edges at which our graph goes on.
        next_edges: for each input, node and slot of our graph.
        leaves: edges of PyTorch's leaves, which get their gradients here.
    """

    __slots__ = ("_devices", "_ends", "_outputs", "inputs", "leaves", "outputs", "shared")

    def __init__(
        self, ports: list[Port], inputs: list[TorchEdge], next_edges: tuple[Edge, ...], leaves: list[TorchEdge]
    ) -> None:
        super().__init__(next_edges, len(ports))
        self.outputs = outputs = [port.edge for port in ports]
        self._devices = [port.device for port in ports]
        self.inputs = inputs
        self.leaves = leaves
        self._outputs = gradient_edges(outputs)
        self._ends = gradient_edges([*inputs, *leaves])
        self.shared = False  # whether other parts run some of its nodes, too

    def apply(self, grads: tuple[Array | None, ...]) -> Sequence[Array | None]:
        """Have PyTorch's engine run the part once, with all gradients that came. Give the leaves theirs; return the others."""
        gatherer = current_gatherer.get()
        outputs, given = self._given(grads)
        if gatherer is None or not given or not self._ends:
            return [None] * len(self.inputs)
        keep = self.shared or gatherer.keeps_graph
        if profiles.get():
            with record_function(self.name()):
                results = differentiate(outputs, given, self._ends, keep)
        else:
            results = differentiate(outputs, given, self._ends, keep)
        inputs = len(self.inputs)
        if self.leaves:
            give = gatherer.hold if is_watched() else gatherer.accumulate
            for (node, _), gradient in zip(self.leaves, _owned(results[inputs:])):
                if gradient is not None:
                    give(node.variable, gradient)
        return [None if gradient is None else _array(gradient) for gradient in results[:inputs]]

    def _given(self, grads: tuple[Array | None, ...]) -> tuple[tuple[Any, ...], tuple[torch.Tensor, ...]]:
        """Return the outputs that have gradients, and these as tensors on the outputs' devices."""
        outputs, given = [], []
        for output, device, grad in zip(self._outputs, self._devices, grads):
            if grad is not None:
                outputs.append(output)
                given.append(_tensor(grad) if device is None else _tensor(grad).to(device))
        return tuple(outputs), tuple(given)

    def name(self) -> str:
        """Return the name of the part in pictures and errors."""
        return f"PyTorch ({', '.join(dict.fromkeys(type(node).__name__ for node, _ in self.outputs))})"


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
        if gradient is None or gradient.layout is not torch.strided:
            continue
        place = gradient.untyped_storage().data_ptr()
        if place in places or 0 in gradient.stride():
            owned[index] = gradient.clone(memory_format=torch.contiguous_format)
        places.add(place)
    return owned
