"""``Planner``: decides which parts of PyTorch's graph run together, and where they are cut.

Our engine runs a part when all its gradients have come. So two tensors are outputs of one part only if neither's gradient can
need that part: no tensor below the later one arrived after the earlier one was sent. A part ends at a tensor that was sent
before, whose own part then runs once with the sum of the gradients. It is not cut there if what is below the tensor is reached
past it, too, be it a leaf or another cut: PyTorch's engine would count the way through the tensor twice. Nor is it cut there if
the tensor has hooks, which the engine would call where the part ends, and again where the next one begins. Then what is below
runs twice, and the gradients add up, which is right because they are linear.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from operator import attrgetter
from typing import Any

import torch
from torch.autograd.graph import GradientEdge

from ...core.extend import Edge
from .nodes import Part, Port
from .walk import ARRIVED_NODE, TorchEdge, Walked, leaf_edge, walk


class Planner:
    """PyTorch's graph of one context on one worker.

    Args:
        orders: numbers of the messages that are sent and arrive there.
    """

    def __init__(self, orders: Iterator[int]) -> None:
        self._orders = orders
        self._lock = threading.Lock()
        self._ports: dict[TorchEdge, Port] = {}
        self._open: list[Port] = []  # not in a part yet, in order
        self._below: dict[TorchEdge, frozenset[TorchEdge]] = {}  # of planned ports: ends and ports below them
        self._parts_through: dict[Any, Part] = {}  # by node of PyTorch: a part that runs it

    def edge(self, tensor: Any) -> Edge | None:
        """Return node and slot for the gradient of a tensor that is sent now, or is a root.

        Args:
            tensor: a tensor of PyTorch that requires grad.

        Returns:
            ``None`` if PyTorch does not record operations in this thread.
        """
        if not torch.is_grad_enabled():
            return None
        node, order = tensor.grad_fn, next(self._orders)
        edge = leaf_edge(tensor) if node is None else (node, tensor.output_nr)
        with self._lock:
            port = self._ports.get(edge)
            if port is None:
                port = self._ports[edge] = Port(tensor, edge, order)
                self._open.append(port)
        return port, 0

    def plan(self) -> None:
        """Give each port a part. Parts that were made before stay as they are, because a pass may be running them."""
        with self._lock:
            fresh, self._open = self._open, []
            fresh.sort(key=attrgetter("order"))
            group: list[Port] = []
            found: Walked | None = None
            for port in fresh:
                beneath = walk([port.edge], self._below)
                below = self._note_below(port, beneath)
                if group and _latest_arrival(below) > group[0].order:
                    self._make_part(group, found)
                    group = []
                found = None if group else beneath
                group.append(port)
            if group:
                self._make_part(group, found)

    def _note_below(self, port: Port, found: Walked) -> frozenset[TorchEdge]:
        planned, below = self._below, frozenset(found.ends)
        if not planned.keys().isdisjoint(below):
            below = below.union(*(planned[end] for end in below if end in planned))
        if not port.is_end:
            planned[port.edge] = below
        return below

    def _make_part(self, group: list[Port], found: Walked | None) -> None:
        """Give ports their part.

        Args:
            group: the ports, in order.
            found: the walk from the only one down to the ports that have parts; ``None`` if there are several.
        """
        if found is not None and self._below.keys().isdisjoint(found.ends):  # usually: nothing was sent before
            self._give_part(group, found, {})
            return
        outputs = [port.edge for port in group]
        ports = {edge: self._ports[edge] for edge in self._below}
        cuts = {edge for edge, port in ports.items() if port.order < group[0].order and not port.hooked}
        found = walk(outputs, cuts)
        while twice := self._counted_twice(found.ends.keys() & cuts, found):
            cuts -= twice
            found = walk(outputs, cuts)
        self._give_part(group, found, {edge: self._ports[edge] for edge in cuts})

    def _counted_twice(self, met: set[TorchEdge], found: Walked) -> set[TorchEdge]:
        """Return those of the cuts that were met below which another end lies, also one that was sent later."""
        return {
            cut
            for cut in met
            if not self._below[cut].isdisjoint(found.ends)
            or (len(met) > 1 and not walk([cut], met - {cut}).ends.keys().isdisjoint(met - {cut}))
        }

    def _give_part(self, group: list[Port], found: Walked, cut_ports: dict[TorchEdge, Port]) -> None:
        inputs: list[GradientEdge] = []
        next_edges: list[Edge] = []
        leaves: list[GradientEdge] = []
        for end in found.ends:
            arrived = type(end[0]) is ARRIVED_NODE
            if arrived or end in cut_ports:
                inputs.append(GradientEdge(*end))
                next_edges.append(end[0].edge if arrived else (cut_ports[end], 0))
            else:
                leaves.append(GradientEdge(*end))
        part = Part(inputs, next_edges, leaves)
        for port in group:
            port.next_edges = ((part, part.add_output(GradientEdge(*port.edge), port.device)),)
        through = self._parts_through
        for node in through.keys() & found.nodes:
            through[node].shared = part.shared = True
        through.update(dict.fromkeys(found.nodes, part))


def _latest_arrival(below: frozenset[TorchEdge]) -> int:
    return max([node.edge[0].order for node, _ in below if type(node) is ARRIVED_NODE], default=-1)
